"""One private count and one private histogram of a small table."""

import discreet as dp

survey = {
    "age": [19, 23, 35, 41, 41, 58, 62, 67, 70, 88] * 60,
    "smokes": [True, False, False, True, False, False, True, False, False, False] * 60,
}
domain = dp.Domain({"age": dp.Bins((18, 30, 45, 65), upper=110), "smokes": dp.Boolean()})
people = dp.open(survey, domain=domain)

print("smokers under 45:", dp.count(people, (dp.col("age") < 45) & dp.col("smokes").isin([True]), epsilon=0.5))

ages = dp.histogram(people, "age", epsilon=0.5)
for label, value in zip(domain["age"].labels, ages.value, strict=True):
    print(f"{label:>10}  {value:5} ± {ages.error:.0f}")
