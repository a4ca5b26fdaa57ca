"""SQL on a DataFrame: say what the rows may be and whom to protect, ask, and plot or join what comes back.

Each person has up to three visits, so one person moves a count by three at most; further visits are dropped.
"""

import pandas as pd

import discreet as dp

visits = pd.DataFrame(
    {
        "patient": [number % 700 for number in range(2_000)],
        "age": [20 + number * 7 % 60 for number in range(2_000)],
        "ward": ["surgery", "medicine", "children", None] * 500,
        "days": [number * number % 15 for number in range(2_000)],
    }
)

schema = dp.schema.parse_schema("""
table: visits
privacy_unit: patient
contributions: 3
columns:
  age:  {type: integer, lower: 0, upper: 110, bins: [0, 18, 40, 65]}
  ward: {values: [surgery, medicine, children], missing: missing}
  days: {type: integer, lower: 0, upper: 30}
""")

table = dp.open(visits, schema=schema)
print(f"Protected: {table.unit.describe}.\n")

answer = dp.ask(
    table,
    """
    SELECT ward, COUNT(*) AS visits, AVG(days) AS stay
    FROM visits
    WHERE age >= 40
    GROUP BY ward
    ORDER BY visits DESC
    """,
    epsilon=2,
)
print(answer)
print("\nAs a frame:", answer.to_frame("polars").schema)
