/** A worker process's side of worker-process.ts. */

/** Whoever has started this process is asked for no more often than this. */
const PARENT_CHECK_MS = 250

export interface WorkerLink {
  post(message: object): void
  listen(listener: (message: unknown) => void): void
  /**
   * Ends this process when nobody would take its answer: to be called now and then by work that lets no
   * message in.
   */
  exitIfOrphaned(): void
}

/**
 * Once a process. From then on it goes when its parent does, and when its parent says so: an interrupt from
 * the keyboard reaches both.
 */
export function linkToParent(): WorkerLink {
  if (process.send === undefined) throw new Error('this module runs in a worker process only')
  const parent = process.ppid
  let lookedAt = 0
  process.on('disconnect', () => process.exit())
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
  return {
    post: (message) => void process.send?.(message),
    listen: (listener) => void process.on('message', listener),
    exitIfOrphaned() {
      const now = performance.now()
      if (now - lookedAt < PARENT_CHECK_MS) return
      lookedAt = now
      if (process.ppid !== parent) process.exit(1)
    },
  }
}
