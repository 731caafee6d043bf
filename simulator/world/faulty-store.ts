/**
 * The controller's store on a disk that may be full, slow or broken, and a controller that may die at any
 * point of a commit.
 */
import type { Clock } from '../../controller/ports/clock.ts'
import { RANK_DEVICE } from '../../controller/ports/clock.ts'
import type { Event } from '../../controller/model/event.ts'
import type { RandomStream } from '../../controller/ports/random.ts'
import type { Batch, Store } from '../../controller/ports/store.ts'
import { StoreFault } from '../../controller/ports/store.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { PersistPoint } from '../scenario/fault.ts'
import type { FaultTally } from '../results/fault-tally.ts'

/** The disk on which the controllers of a world have their store, one after the other or two at once. */
export interface StoreDisk {
  /** So many faults fill it. */
  fullCount: number
  /** A commit is durable after a random time up to this, and known to be after as much again; 0: at once. */
  slowMs: DurationMs
  /** So many of the next commits fail without anybody knowing whether they are durable. */
  failingFsyncs: number
  /** Where the controller dies next: one at a time, in this order. */
  readonly crashPoints: CrashPoint[]
  /** Whoever opened it last: from then on nobody else writes (a real store is locked when it is opened). */
  owner: Committer | null
}

export interface CrashPoint {
  readonly point: PersistPoint
  readonly onCrash: () => void
}

export function healthyDisk(): StoreDisk {
  return { fullCount: 0, slowMs: 0, failingFsyncs: 0, crashPoints: [], owner: null }
}

/** The process that commits. */
export interface Committer {
  readonly isOver: boolean
  die(): void
  /**
   * It dies with the next command that it sends: `after_answers` before it leaves, `after_effects` when it
   * has left.
   */
  dieAtNextCommand(death: CrashPoint): void
}

export interface StoreOptions {
  readonly inner: Store
  readonly disk: StoreDisk
  readonly clock: Clock
  readonly random: RandomStream
  readonly tally: FaultTally
  /** Every event, in order, as soon as it is durable: whoever had it committed may die before he can tell. */
  readonly onDurable: (events: readonly Event[]) => void
  /** A promise was made or kept: what follows from it runs before the next step of the clock. */
  readonly onPromise: () => void
}

/** The store as one controller process has it: what it has committed outlives it. */
export function storeOf(process: Committer, o: StoreOptions): Store {
  const { inner, disk, tally } = o
  const refuse = (why: string): Promise<void> => {
    o.onPromise()
    return Promise.reject(new StoreFault(why))
  }
  const keep = (batch: Batch): Promise<void> | undefined => {
    if (disk.owner !== process)
      return refuse('another controller has taken over the store: this one must stop')
    const kept = inner.commit(batch)
    if (kept !== undefined) o.onPromise()
    else if (batch.events.length > 0) o.onDurable(batch.events)
    return kept
  }
  const later = (then: () => void): void => {
    const at = o.clock.now() + Math.floor(o.random() * (disk.slowMs + 1))
    o.clock.at(at, () => process.isOver || then(), RANK_DEVICE)
  }
  const keepSlowly = (batch: Batch): Promise<void> =>
    new Promise((resolve, reject) => {
      tally.fires('slow_disk')
      later(() => {
        const kept = keep(batch)
        if (kept !== undefined) kept.catch(reject)
        else
          later(() => {
            o.onPromise()
            resolve()
          })
      })
    })
  const dieAt = ({ onCrash }: CrashPoint): Promise<void> => {
    process.die()
    onCrash()
    return never()
  }
  const commit = (batch: Batch): Promise<void> | undefined => {
    if (process.isOver) return never()
    if (disk.fullCount > 0) {
      tally.fires('disk_full')
      return refuse('the disk is full')
    }
    if (disk.failingFsyncs > 0) {
      disk.failingFsyncs -= 1
      tally.fires('fsync_error')
      const isDurable = o.random() < 0.5
      if (isDurable) keep(batch)?.catch(() => {})
      return refuse('fsync failed')
    }
    const death = disk.crashPoints.shift()
    if (death?.point === 'before_persist') return dieAt(death)
    if (death?.point === 'after_persist') return keep(batch) ?? dieAt(death)
    if (death !== undefined) process.dieAtNextCommand(death)
    return disk.slowMs > 0 ? keepSlowly(batch) : keep(batch)
  }
  const load = (): ReturnType<Store['load']> => {
    disk.owner = process
    return inner.load()
  }
  return { ...inner, load, commit }
}

function never(): Promise<void> {
  return new Promise(() => {})
}
