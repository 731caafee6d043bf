/** How many requests a source may make: a bucket that refills steadily and holds two seconds' worth. */
export interface RateLimiter {
  /** Takes one; answers 0, or after how many seconds to try again. */
  take(source: string, nowMs: number): number
}

/** Sources that are told apart; the one that came first is forgotten first, which gives it a full bucket. */
const MAX_SOURCES = 10_000
const BURST_SECONDS = 2

interface Bucket {
  tokens: number
  at: number
}

/** @param perSecond 0: no limit. */
export function createRateLimiter(perSecond: number, maxSources = MAX_SOURCES): RateLimiter {
  if (perSecond === 0) return { take: () => 0 }
  const buckets = new Map<string, Bucket>()
  const capacity = perSecond * BURST_SECONDS
  return {
    take(source, nowMs) {
      const bucket = buckets.get(source) ?? newBucket(source, nowMs)
      bucket.tokens = Math.min(capacity, bucket.tokens + ((nowMs - bucket.at) / 1000) * perSecond)
      bucket.at = nowMs
      if (bucket.tokens < 1) return Math.max(1, Math.ceil((1 - bucket.tokens) / perSecond))
      bucket.tokens -= 1
      return 0
    },
  }

  function newBucket(source: string, nowMs: number): Bucket {
    const oldest = buckets.size >= maxSources ? buckets.keys().next() : null
    if (oldest?.done === false) buckets.delete(oldest.value)
    const bucket = { tokens: capacity, at: nowMs }
    buckets.set(source, bucket)
    return bucket
  }
}
