/** Tasks that are stopped while swapped out and cannot signal new work: a probe returns them. */
import { describe, expect, it } from 'vitest'
import type { Event } from '../../controller/model/event.ts'
import type { Work } from '../../simulator/trace/trace-format.ts'
import { snapshotText } from '../../simulator/snapshot/snapshot-text.ts'
import { snapshotOfWorld } from '../../simulator/snapshot/world-snapshot.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { runScenario } from '../../simulator/run/run.ts'
import {
  type Command,
  MINUTE,
  node,
  phases,
  play,
  QUICK_SWAP,
  task,
  type WorldRun,
} from '../support/world-builder.ts'

const CONFIG = {
  default_vram_overcommit_percent: 100,
  idle_swap_out_seconds: 60,
  swap_in_probe_seconds: 300,
  eager_swap_in_seconds: null,
}
/** 600 MiB at 1 GiB/s, plus 0.1 s. */
const COPY_MS = 686
/** `waits` is swapped out for `other`, and returns by the probe. */
const OUT_AT = 2 * MINUTE + COPY_MS
const BACK_AT = OUT_AT + 5 * MINUTE + COPY_MS

/**
 * One GPU with room for one of two tasks: `waits` runs its `work`; `other` starts after 2 min and runs for
 * one.
 */
function playOne(work: Work, signalsWanted: boolean, commands: readonly Command[] = []): Promise<WorldRun> {
  const tasks = [
    task({ id: 'waits', vramMib: 600, work }),
    task({ id: 'other', at: 2 * MINUTE, vramMib: 600, work: phases(MINUTE, 0) }),
  ]
  return play({
    nodes: [node({ name: 'n', signalsWanted, swap: QUICK_SWAP })],
    config: CONFIG,
    tasks,
    commands,
  })
}

function timesOf(events: readonly Event[], taskId: string): readonly (readonly [string, number])[] {
  const words = {
    task_residency: (data: Event['data']) => String(data['residency']),
    task_finished: () => 'finished',
  }
  return events.flatMap(({ kind, taskId: id, data, at }) =>
    id === taskId && (kind === 'task_residency' || kind === 'task_finished')
      ? [[words[kind](data), at] as const]
      : [],
  )
}

describe('a task that is stopped while swapped out', () => {
  it('is returned by the probe, finds its work, and completes it', async () => {
    const { events, world } = await playOne(phases(1000, 3 * MINUTE, 10_000, 0), false)
    expect(timesOf(events, 'waits')).toEqual([
      ['swapping_out', 2 * MINUTE],
      ['swapped_out', OUT_AT],
      ['swapping_in', OUT_AT + 5 * MINUTE],
      ['resident', BACK_AT],
      ['finished', BACK_AT + 10_000],
    ])
    const unsignalledWaitMs = BACK_AT - 3 * MINUTE - 1000
    const heardMs = 1000 + 10_000 + MINUTE + COPY_MS
    expect(world.metrics().unsignalled_wait_percent).toBeCloseTo(
      (100 * unsignalledWaitMs) / (unsignalledWaitMs + heardMs),
      6,
    )
    expect(world.metrics().starvation_percent.swap).toBe(0)
  })

  it('returns when its work arrives if it can signal', async () => {
    const { events, world } = await playOne(phases(1000, 4 * MINUTE, 10_000, 0), true)
    expect(timesOf(events, 'waits').slice(2)).toEqual([
      ['swapping_in', 4 * MINUTE + 1000],
      ['resident', 4 * MINUTE + 1000 + COPY_MS],
      ['finished', 4 * MINUTE + 11_000 + COPY_MS],
    ])
    expect(world.metrics().unsignalled_wait_percent).toBeUndefined()
  })

  it('ends on its return if no work is left', async () => {
    const { events, world } = await playOne(phases(1000, 4 * MINUTE), false)
    expect(timesOf(events, 'waits').slice(-2)).toEqual([
      ['resident', BACK_AT],
      ['finished', BACK_AT],
    ])
    expect(world.metrics().unsignalled_wait_percent).toBe(0)
  })

  it('is probed repeatedly without free VRAM, and stays resident if no task needs the VRAM', async () => {
    const { events } = await playOne(phases(1000, 30 * MINUTE, 1000, 0), false)
    expect(timesOf(events, 'waits').slice(3)).toEqual([
      ['resident', BACK_AT],
      ['finished', 30 * MINUTE + 2000],
    ])
  })

  it('returns even if its server restarts meanwhile or during the return', async () => {
    const commands: Command[] = [
      { at: 4 * MINUTE, restart: 'n' },
      { at: OUT_AT + 5 * MINUTE + 100, restart: 'n' },
    ]
    const { events, world } = await playOne(phases(1000, 3 * MINUTE, 10_000, 0), false, commands)
    expect(timesOf(events, 'waits').at(-1)?.[0]).toBe('finished')
    expect(world.metrics().unsignalled_wait_percent).toBeGreaterThan(0)
  })

  it('continues when a restarted server finds it swapping out, and reports its work', async () => {
    const { events } = await playOne(phases(1000, 2 * MINUTE - 800, 10_000, 0), false, [
      { at: 2 * MINUTE + 400, restart: 'n' },
    ])
    expect(timesOf(events, 'waits')[1]).toEqual(['resident', 2 * MINUTE + 400])
    expect(timesOf(events, 'waits').at(-1)).toEqual(['finished', 2 * MINUTE + 10_400])
  })

  it('cannot signal in a snapshot either, and keeps its probe time there', async () => {
    const waits = task({ id: 'waits', vramMib: 600, work: phases(1000, 3 * MINUTE, 10_000, 0) })
    const other = task({ id: 'other', at: 2 * MINUTE, vramMib: 600, work: phases(MINUTE, 0) })
    const { world } = await play(
      { nodes: [node({ name: 'n', signalsWanted: false })], config: CONFIG, tasks: [waits, other] },
      { untilMs: 3.5 * MINUTE },
    )
    const text = [...snapshotText(snapshotOfWorld(world), { name: 'away', description: 'here' })].join('')
    const { scenario } = loadScenario({ text, baseDir: '.' })
    expect(scenario.nodes[0]?.signalsWanted).toBe(false)
    const { result } = await runScenario(scenario, {
      scenarioSha256: null,
      traceSha256: null,
      version: 'test',
    })
    expect(result.metrics.tasks.completed).toBe(1)
    expect(result.virtual_s).toBeCloseTo((BACK_AT + 10_000 - 3.5 * MINUTE) / 1000, 3)
  })
})
