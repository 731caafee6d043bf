/** Copy speed of GPUs: bytes and time of the swaps from their order to their end. */
import type { Event } from '../../../controller/model/event.ts'
import type { Instant, Mib } from '../../../protocol/units.ts'
import type { SwapProfile } from '../../scenario/swap-profiles.ts'

type Way = 'out' | 'in'

export class ObservedSwaps {
  readonly #underWay = new Map<string, { readonly way: Way; readonly at: Instant }>()
  readonly #sums = { out: { mib: 0, ms: 0 }, in: { mib: 0, ms: 0 } }

  /** @param mib on each of the task's GPUs */
  see({ kind, taskId, at, data }: Event, mib: Mib): void {
    if (kind !== 'task_residency' || taskId === null) return
    const residency = data['residency']
    if (residency === 'swapping_out' || residency === 'swapping_in') {
      this.#underWay.set(taskId, { way: residency === 'swapping_out' ? 'out' : 'in', at })
      return
    }
    const began = this.#underWay.get(taskId)
    this.#underWay.delete(taskId)
    const isDone = began !== undefined && residency === (began.way === 'out' ? 'swapped_out' : 'resident')
    if (!isDone || mib === 0) return
    this.#sums[began.way].mib += mib
    this.#sums[began.way].ms += at - began.at
  }

  /** Null: no swaps in both directions were observed. */
  profile(): SwapProfile | null {
    const { out, in: back } = this.#sums
    if (out.ms === 0 || back.ms === 0) return null
    const rate = ({ mib, ms }: { readonly mib: number; readonly ms: number }): number =>
      Math.max(1, Math.round((1000 * mib) / ms))
    return { outMibPerS: rate(out), inMibPerS: rate(back), outFixedMs: 0, inFixedMs: 0 }
  }
}
