"""What may be spent: budgets, caps, and the durable log that never overspends and never forgets."""

from discreet.ledger.audit import Audit, verify
from discreet.ledger.balance import Balance
from discreet.ledger.budget import Budget
from discreet.ledger.head import Head
from discreet.ledger.history import Spend
from discreet.ledger.ledger import Ledger, Receipt
from discreet.ledger.scope import EACH, Scope

__all__ = ["EACH", "Audit", "Balance", "Budget", "Head", "Ledger", "Receipt", "Scope", "Spend", "verify"]
