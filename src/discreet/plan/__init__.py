"""The cheapest valid way to answer questions; planning reads no row and spends nothing."""

from discreet.plan.plan import Steps, plan_steps
from discreet.plan.steps import Target

__all__ = ["Steps", "Target", "plan_steps"]
