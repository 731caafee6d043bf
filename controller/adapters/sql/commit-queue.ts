/**
 * Group commit: while one transaction is being written, the next fills. Batches become durable in order;
 * after the first failure nothing more is written (R10).
 */
import { StoreFault } from '../../ports/store.ts'
import type { BatchRows } from './rows.ts'

/** Maximum number of batches per transaction. */
const MAX_BATCHES_PER_TRANSACTION = 256

/** Maximum number of batches waiting for the disk. Beyond it the disk has stalled, and the store fails. */
const MAX_WAITING_BATCHES = 10_000

export interface CommitQueue {
  /** Resolves when the batch is durable; rejects with the StoreFault that ended the queue. */
  add(rows: BatchRows): Promise<void>
  /** Fails the queue: waiting and later batches are rejected. */
  fail(fault: StoreFault): void
  hasFailed(): boolean
  /** Number of batches that wait for the current transaction. */
  depth(): number
  /**
   * Writes waiting batches; later ones are rejected with this fault. Resolves when all are done, never
   * rejects.
   */
  end(fault: StoreFault): Promise<void>
}

interface Waiting {
  readonly rows: BatchRows
  resolve(): void
  reject(fault: StoreFault): void
}

/** @param write makes all rows durable as one transaction, or rejects with a StoreFault and writes nothing */
export function createCommitQueue(write: (batches: readonly BatchRows[]) => Promise<unknown>): CommitQueue {
  const waiting: Waiting[] = []
  let refusal: StoreFault | null = null
  let failure: StoreFault | null = null
  let running: Promise<void> | null = null

  async function run(): Promise<void> {
    while (waiting.length > 0) await writeNext(waiting.splice(0, MAX_BATCHES_PER_TRANSACTION))
    running = null
  }

  async function writeNext(group: readonly Waiting[]): Promise<void> {
    try {
      await write(group.map((each) => each.rows))
      for (const each of group) each.resolve()
    } catch (error) {
      const fault = error instanceof StoreFault ? error : new StoreFault('the store failed', { cause: error })
      for (const each of group) each.reject(fault)
      fail(fault)
    }
  }

  function fail(fault: StoreFault): void {
    failure ??= fault
    refusal ??= fault
    for (const each of waiting.splice(0)) each.reject(fault)
  }

  return {
    add: (rows) => {
      if (waiting.length >= MAX_WAITING_BATCHES) fail(new StoreFault(stalled()))
      if (refusal !== null) return Promise.reject(refusal)
      return new Promise((resolve, reject) => {
        waiting.push({ rows, resolve, reject })
        running ??= run()
      })
    },
    fail,
    hasFailed: () => failure !== null,
    depth: () => waiting.length,
    end: (fault) => {
      refusal ??= fault
      return running ?? Promise.resolve()
    },
  }
}

function stalled(): string {
  return `the disk has stalled: ${MAX_WAITING_BATCHES} commits wait for it`
}
