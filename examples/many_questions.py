"""Ask three hundred questions of a census table on one budget, each to within 100 people: most of them are free."""

from itertools import combinations, product

import discreet as dp

people = dp.load_adult()
columns = people.domain
ages = list(combinations(range(20, 75, 5), 2))  # from 20 to 25, from 20 to 30, …
asked = [
    *(f"age >= {low} AND age < {high} AND sex = '{sex}'" for (low, high), sex in product(ages, ("Female", "Male"))),
    *(f"education = '{e}' AND race = '{r}'" for e, r in product(columns["education"].values, columns["race"].values)),
    *(f"hours_per_week > {h} AND income = '{i}'" for h, i in product(range(5, 60), columns["income"].values)),
]

with dp.Curator(people, budget=dp.Budget(epsilon=1, delta=1e-9), ledger="many.sqlite") as desk:
    (account,) = desk.ledger.balances()
    alone = account.counts_left(error=100)
    answers = [desk.ask(question, error=100) for question in asked]
    free = sum(answer.origin == "known" for answer in answers)
    print(f"{len(answers)} questions, {free} of them free; for the same budget, one by one: {alone}.")
    print(f"Spent: {desk.spent}. Left: {desk.remaining}.")
    for answer, question in list(zip(answers, asked, strict=True))[::60]:
        print(f"  {question:46}  {answer}")
