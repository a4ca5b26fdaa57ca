"""The ledger: budgets, caps, and the durable log of what was spent and released."""

from discreet.ledger.accounts import EACH, Balance, Budget, Scope
from discreet.ledger.audit import Audit, verify
from discreet.ledger.history import Spend
from discreet.ledger.ledger import Ledger, Receipt
from discreet.ledger.log import Head

__all__ = ["EACH", "Audit", "Balance", "Budget", "Head", "Ledger", "Receipt", "Scope", "Spend", "verify"]
