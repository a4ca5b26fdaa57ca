"""Spend one budget on questions that are chosen by looking at the answers, until nothing fits any more."""

import discreet as dp
from discreet.accounting import gaussian_gate
from discreet.mechanism import gaussian
from discreet.query import count
from discreet.source import sensitivity_of

domain = dp.Domain({"income": dp.Integers(0, 63, missing="drop")})
people = dp.open({"income": [min(63, (7 * i * i) % 90) for i in range(5000)]}, domain=domain)

gate = gaussian_gate(epsilon=1, delta=1e-9)
spent = gate.nothing
low, high = 0, 64

# The median, by bisection: each question depends on the answers before it.
while high - low > 1:
    middle = (low + high) // 2
    question = count(domain, dp.col("income") < middle)
    mechanism = gaussian(sigma=16, sensitivity=sensitivity_of(question, domain, people.unit))
    amount = gate.charge(mechanism.event)
    if not gate.fits(spent, amount):
        print("the budget is gone")
        break
    spent = gate.add(spent, amount)  # pay first
    below = int(mechanism.release(people.evaluate(question))[0])
    left = 1 - spent[0] / gate.limit[0]
    print(f"below {middle:2}: {below:5} ± {mechanism.error(0.95):.0f}, {left:.0%} of the budget left")
    low, high = (low, middle) if below > 2500 else (middle, high)

print(f"the median income is about {low}")
