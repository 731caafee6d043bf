/** Parts of a wake, from the events of a task and of the victims that made room for it. */
import { describe, expect, it } from 'vitest'
import { totalOf, WakeTimes, type Wake } from '../../controller/metrics/wake-times.ts'
import type { Event } from '../../controller/model/event.ts'
import type { Placement } from '../../controller/model/placement.ts'

interface Wants {
  readonly wantsGpu: boolean
  readonly wantsSince: number
}

/** Takes the moves `[at, task, residency, because]` and returns the wakes that ended. */
function wakesOf(
  moves: readonly (readonly [at: number, id: string, residency: string, because?: string])[],
  wants: Readonly<Record<string, Wants>>,
): readonly Wake[] {
  const times = new WakeTimes((id) => (wants[id] ?? null) as Placement | null)
  return moves
    .map(([at, taskId, residency, because = null]) =>
      times.take({ kind: 'task_residency', taskId, at, data: { residency, because } } as unknown as Event),
    )
    .filter((wake) => wake !== null)
}

describe('the time of a wake', () => {
  it('is the wait for a victim, the swap-out of the victims, and the swap-in', () => {
    const wakes = wakesOf(
      [
        [0, 'chat', 'swapping_out', 'for code'],
        [700, 'chat', 'swapped_out'],
        [2_000, 'code', 'swapping_out', 'for chat'],
        [2_500, 'vision', 'swapping_out', 'for chat'],
        [2_800, 'code', 'swapped_out'],
        [3_200, 'vision', 'swapped_out'],
        [3_250, 'chat', 'swapping_in'],
        [4_200, 'chat', 'resident'],
      ],
      { chat: { wantsGpu: true, wantsSince: 1_500 } },
    )
    expect(wakes).toEqual([{ waitMs: 550, swapOutMs: 1_200, swapInMs: 950 }])
    expect(wakes.map(totalOf)).toEqual([2_700])
  })

  it('is the swap-in alone where VRAM is free', () => {
    expect(
      wakesOf(
        [
          [0, 'chat', 'swapped_out'],
          [900, 'chat', 'swapping_in'],
          [1_800, 'chat', 'resident'],
        ],
        { chat: { wantsGpu: true, wantsSince: 900 } },
      ),
    ).toEqual([{ waitMs: 0, swapOutMs: 0, swapInMs: 900 }])
  })

  it('begins with the swap-out of a task that wanted the GPU all the time', () => {
    const [wake] = wakesOf(
      [
        [1_000, 'chat', 'swapped_out'],
        [4_000, 'chat', 'swapping_in'],
        [5_000, 'chat', 'resident'],
      ],
      { chat: { wantsGpu: true, wantsSince: 0 } },
    )
    expect(wake).toEqual({ waitMs: 3_000, swapOutMs: 0, swapInMs: 1_000 })
  })

  it('continues over a swap-in that failed', () => {
    const [wake] = wakesOf(
      [
        [0, 'chat', 'swapped_out'],
        [1_000, 'chat', 'swapping_in'],
        [2_000, 'chat', 'swapped_out', 'no_vram'],
        [5_000, 'chat', 'swapping_in'],
        [6_000, 'chat', 'resident'],
      ],
      { chat: { wantsGpu: true, wantsSince: 1_000 } },
    )
    expect(wake).toEqual({ waitMs: 4_000, swapOutMs: 0, swapInMs: 1_000 })
  })

  it.each([
    ['a task that returns without wanting the GPU, as for a probe', false, true],
    ['a swap-out that was cancelled', true, false],
  ])('is not counted for %s', (_, wantsGpu, isOut) => {
    expect(
      wakesOf(
        [
          [0, 'chat', isOut ? 'swapped_out' : 'swapping_out'],
          [900, 'chat', 'resident'],
        ],
        { chat: { wantsGpu, wantsSince: 0 } },
      ),
    ).toEqual([])
  })
})
