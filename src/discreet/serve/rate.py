"""How many requests of one token are served: a bucket fills at a steady rate, and each request takes one."""


class Rate:
    """Buckets by name; each begins full. A rate of 0 is no limit.

    >>> rate = Rate(per_second=2, burst=1)
    >>> rate.take("ana", 0.0), rate.take("ana", 0.0), rate.take("ben", 0.0), rate.take("ana", 0.5)
    (0.0, 0.5, 0.0, 0.0)
    """

    def __init__(self, per_second: float, burst: float) -> None:
        self._rate, self._burst = per_second, max(1.0, burst)
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, name: str, now: float) -> float:
        """Take one from a bucket, or say after how many seconds there will be one."""
        if not self._rate:
            return 0.0
        left, at = self._buckets.get(name, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        taken = left >= 1
        self._buckets[name] = (left - taken, now)
        return 0.0 if taken else (1 - left) / self._rate
