/** Tasks of a simulated GPU that move their data themselves, by the rules of a real server. */
import { afterAll, describe, expect, it } from 'vitest'
import type { Event } from '../../controller/model/event.ts'
import { createOperatorClients } from '../../services/runs/shared-operator-clients.ts'
import { runScenario } from '../../simulator/run/run.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import type { World } from '../../simulator/world/world.ts'

const operatorClients = createOperatorClients()
afterAll(() => operatorClients.close())

const IDENTITY = { scenarioSha256: null, traceSha256: null, version: 'test' }

/** 6000 MiB leave in 1 s by the driver, in 0.1 s by hooks; the deadline of an order is 10 s + 26 s. */
const GPU = {
  vram_mib: 12_000,
  swap: { out_mib_per_s: 6000, in_mib_per_s: 6000 },
  swap_hooks: { swap: { out_mib_per_s: 60_000, in_mib_per_s: 60_000 }, residual_mib: 500 },
}
const DEADLINE_MS = 10_000 + Math.ceil((3 * 6_000_000) / 700)
const FULL = { vram_mib: 6000, swap_method: 'hooks', run: '10h' }

interface Setup {
  readonly gpu?: object
  readonly node?: object
  readonly task?: object
  readonly faults?: readonly object[]
  /** Seconds at which an operator swaps it out; it is called back 200 s later. */
  readonly outs?: readonly number[]
  readonly look?: (world: World) => void
}

/** What happens to the one task, after its start: [second, what]. */
async function course({
  gpu,
  node,
  task,
  faults = [],
  outs = [100],
  look,
}: Setup): Promise<(number | string)[][]> {
  const order = (at: number, direction: string) => ({
    at: `${at}s`,
    post: `/api/v1/tasks/t/swap-${direction}`,
    body: {},
  })
  const { scenario } = loadScenario({
    text: JSON.stringify({
      scenario: 'hooks',
      version: 1,
      clock: { until: '40m', drain: false },
      fleet: [{ name: 'n', gpu: { ...GPU, ...gpu }, ...node }],
      config: { eager_swap_in_seconds: null, default_vram_overcommit_percent: 100, safety_reserve_mib: 0 },
      workload: [
        {
          task: {
            id: 't',
            ...FULL,
            work: { kind: 'phases', phases: [[1, 36_000_000]] },
            ...task,
            run: undefined,
          },
        },
      ],
      operator: outs.flatMap((at) => [order(at, 'out'), order(at + 200, 'in')]),
      faults,
    }),
    baseDir: '.',
  })
  const events: (number | string)[][] = []
  await runScenario(scenario, IDENTITY, {
    openOperatorClient: operatorClients.openOperatorClient,
    watch: (world) => {
      const startedAt = world.clock.now()
      world.listen((batch) => events.push(...batch.flatMap((event) => saying(event, startedAt))))
      return { afterStep: () => look?.(world) }
    },
  })
  return events
}

function saying({ kind, at, data }: Event, startedAt: number): (number | string)[][] {
  const after = (at - startedAt) / 1000
  const { residency, residual_mib: kept, because } = data
  if (kind === 'task_became_noswap') return [[after, kind]]
  if (kind === 'task_finished') return [[after, `${String(data['state'])}: ${String(data['reason'])}`]]
  if (kind !== 'task_residency' || residency === 'swapping_in' || residency === 'swapping_out') return []
  return [[after, `${String(residency)}${because === null ? '' : `: ${String(because)}`}`, Number(kept ?? 0)]]
}

const failing = (how: string, more: object = {}) => ({ at: '90s', hooks_fail: 'n', how, for: '20s', ...more })

describe('a simulated task with hooks', () => {
  it('leaves and returns at the speed of its method, and keeps what the profile says', async () => {
    expect(await course({})).toEqual([
      [100.092, 'swapped_out', 500],
      [300.092, 'resident', 0],
    ])
  })

  it('leaves at the speed of the driver where no other is stated, as one without hooks does', async () => {
    const task = { swap_method: 'engine', swap_engine: { kind: 'vllm', port: 8000 } }
    const expected = [
      [101, 'swapped_out', 0],
      [301, 'resident', 0],
    ]
    expect(await course({ task })).toEqual(expected)
    expect(await course({ task: { swap_method: null } })).toEqual(expected)
  })

  it('takes host memory for what leaves only', async () => {
    const counted = new Set<number>()
    await course({
      look: (world) => {
        const [server] = world.fleet.servers.values()
        for (const { residency, hostMib } of server?.attempts.values() ?? [])
          if (residency === 'swapped_out') counted.add(hostMib)
      },
    })
    expect([...counted]).toEqual([5500])
  })

  it('that answers with an error is swapped by the driver', async () => {
    expect((await course({ faults: [failing('error')] }))[0]).toEqual([101, 'swapped_out', 0])
  })

  it('that does not answer is swapped by the driver after the deadline', async () => {
    expect((await course({ faults: [failing('hang')] }))[0]).toEqual([
      100 + DEADLINE_MS / 1000 + 1,
      'swapped_out',
      0,
    ])
  })

  it('that keeps more than a suspend may leave is told to resume, and swapped by the driver', async () => {
    // It says that nothing stays.
    expect((await course({ faults: [failing('lie', { keeps_mib: 900 })] }))[0]).toEqual([
      100.085,
      'swapped_out',
      900,
    ])
    const [first] = await course({ faults: [failing('lie', { keeps_mib: 2000 })] })
    // 67 ms out, measured for 3 s, 67 ms back, then the driver.
    expect(first).toEqual([104.134, 'swapped_out', 0])
  })

  it('that frees nothing has failed, even if it is smaller than what may stay', async () => {
    const task = { vram_mib: 600 }
    const [first] = await course({ task, faults: [failing('lie')] })
    expect(first).toEqual([103.1, 'swapped_out', 0])
  })

  it('whose hooks failed twice within an hour is swapped by the driver from then on', async () => {
    const outs = [100, 500, 900, 1300]
    const faults = [failing('error'), { ...failing('error'), at: '890s' }]
    expect(await course({ outs, faults })).toEqual([
      [101, 'swapped_out', 0],
      [301, 'resident', 0],
      [500.092, 'swapped_out', 500],
      [700.092, 'resident', 0],
      [901, 'swapped_out', 0],
      [1101, 'resident', 0],
      [1301, 'swapped_out', 0],
      [1501, 'resident', 0],
    ])
  })

  it('whose hooks fail where the driver can swap nothing becomes a noswap task', async () => {
    const gpu = { driver_swaps: false }
    expect(await course({ gpu })).toEqual([
      [100.092, 'swapped_out', 500],
      [300.092, 'resident', 0],
    ])
    expect(await course({ gpu, faults: [failing('error')] })).toEqual([
      [100, 'resident: not_swappable', 0],
      [100, 'task_became_noswap'],
    ])
    expect(await course({ gpu, task: { swap_method: null } })).toEqual([
      [100, 'resident: not_swappable', 0],
      [100, 'task_became_noswap'],
    ])
  })

  it('that dies in its hook has failed', async () => {
    expect(await course({ faults: [failing('die')] })).toEqual([
      [100.001, 'failed: it crashed in its swap hook'],
    ])
  })

  it('that returns after its server gave up uses foreign VRAM until it suspends again', async () => {
    const foreign: number[] = []
    const events = await course({
      faults: [{ ...failing('late'), at: '290s' }],
      look: (world) => {
        const mib = [...world.controller.cluster.nodes.values()][0]?.gpus[0]?.foreignMib ?? 0
        if (foreign.at(-1) !== mib) foreign.push(mib)
      },
    })
    expect(foreign).toEqual([0, 5500, 0])
    expect(events.slice(0, 2)).toEqual([
      [100.092, 'swapped_out', 500],
      [Number((300 + DEADLINE_MS / 1000).toFixed(3)), 'swapped_out: copy_failed', 500],
    ])
    expect(events.at(-1)?.[1]).toBe('resident')
  })
})
