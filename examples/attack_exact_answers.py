"""Two hundred harmless counts tell everybody's income, private ones do not; and noise that is a float tells too."""

import numpy as np

import discreet as dp
from discreet.lab.attack import attack_by_reconstruction, audit, choose_people

people = choose_people(dp.load_adult(), 60, public=["age", "education", "sex"], secret="income", value=">50K")
outcome = attack_by_reconstruction(people, epsilon=1, questions=200)
print(people)
for each in outcome.learnt:
    print(f"{each.source:30} {each.share:6.1%}")
print(f"{'epsilon 1 permits':30} {outcome.limit:6.1%}")
assert outcome.best("exact") == 1
assert outcome.holds

# Noise from a textbook generator: the last bits of a double tell what the value was before.
generator = np.random.default_rng()
found = audit(lambda value, size: value + generator.laplace(0, 1, size), 0.0, 1.0, samples=100_000)
print(f"numpy's Laplace noise, said to be 1-DP: {found}")
assert found.refutes(1)
