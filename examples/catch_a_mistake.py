"""Build a mechanism with a common mistake, and let `verify` find the pair of tables that betrays it."""

import discreet as dp
from discreet import verify
from discreet.mechanism import histogram, laplace

unit = dp.Unit(neighbors="replace_one")
cells = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]  # a histogram of three cells: a row adds one to its own

right = verify.check(lambda moves: laplace(epsilon=1, sensitivity=moves), cells, unit)
print("with the computed sensitivity,", right)

# "A count has sensitivity one" is true of each cell, and false of the histogram when a row is replaced.
wrong = verify.check(lambda moves: laplace(epsilon=1, sensitivity=1), cells, unit)
print("with sensitivity one,", wrong)

print("the joint release knows:", histogram(epsilon=1, cells=3, unit=unit).event)
assert right.holds
assert wrong.refuted
