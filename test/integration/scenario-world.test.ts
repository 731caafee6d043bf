/**
 * Features of the scenario language in simulations: foreign memory, a shared host link, owner limits, and
 * tasks that an operator submits.
 */
import { describe, expect, it } from 'vitest'
import { openOperatorClient } from '../../services/runs/operator-client.ts'
import { createChecker } from '../../simulator/check/checker.ts'
import type { Checker } from '../../simulator/check/checker.ts'
import { runScenario } from '../../simulator/run/run.ts'
import type { Run } from '../../simulator/run/run.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import type { Event } from '../../controller/model/event.ts'

const NO_IDENTITY = { scenarioSha256: null, traceSha256: null, version: 'test' }
const ALWAYS =
  'assert: { always: [single_run, resident_within_capacity, reserve_kept, commit_limit, fairness_bound] }\n'

async function runOf(
  text: string,
  options: { readonly areHeartbeatsEnacted?: boolean } = {},
): Promise<Run & { readonly events: readonly Event[] }> {
  const { scenario } = loadScenario({
    text: `scenario: x\nversion: 1\n${text}${ALWAYS}`,
    baseDir: '/nowhere',
  })
  const events: Event[] = []
  let checker: Checker | null = null
  const run = await runScenario(scenario, NO_IDENTITY, {
    ...options,
    openOperatorClient,
    watch: (world) => {
      world.listen((list) => events.push(...list))
      return (checker = createChecker(world, scenario.assertions))
    },
  })
  expect((checker as unknown as Checker).finish(run.result.metrics)).toEqual([])
  return { ...run, events }
}

const eventsOf = (events: readonly Event[], taskId: string): string[] =>
  events
    .filter((event) => event.taskId === taskId)
    .map(({ kind, data }) => (kind === 'task_residency' ? String(data['residency']) : kind))

describe('foreign VRAM in a scenario', () => {
  const FLEET =
    'fleet: [{ name: a, gpu: { vram_mib: 40960 }, foreign: [{ at: 1h, mib: 20Gi }, { at: 3h, mib: 0 }] ' +
    '}]\n'

  it('excludes new tasks and causes a swap-out of an idle task, as long as it exists', async () => {
    const { events, result } = await runOf(`${FLEET}config: { default_vram_overcommit_percent: 100 }
workload:
  - { task: { id: idle, vram_mib: 18Gi, work: { kind: phases, phases: [[1m, 6h], [1m, 0]] } } }
  - { task: { id: late, at: 90m, vram_mib: 30Gi, run: 10m } }
`)
    expect(eventsOf(events, 'idle').filter((kind) => kind === 'swapped_out')).toHaveLength(1)
    const placed = events.find(({ kind, taskId }) => kind === 'task_placed' && taskId === 'late')
    const placedMin = ((placed?.at ?? 0) - 1_767_225_600_000) / 60_000
    expect([placedMin >= 180, placedMin < 181]).toEqual([true, true])
    expect(result.metrics.tasks.completed).toBe(2)
  })

  it('leads to equal decisions with every heartbeat enacted', async () => {
    const text =
      `${FLEET}workload:\n  - { generate: poisson, rate_per_hour: 10, until: 5h, vram_mib: 12Gi, ` +
      'duration: 20m, activity: serving }\n'
    const [elided, enacted] = [await runOf(text), await runOf(text, { areHeartbeatsEnacted: true })]
    expect(enacted.result.digest).toBe(elided.result.digest)
  })
})

describe('a shared host link', () => {
  const text = (
    link: string,
  ): string => `fleet: [{ name: a, gpus: 4, gpu: { vram_mib: 40960, swap: pinned-gen4 }${link} }]
config: { default_vram_overcommit_percent: 100, idle_swap_out_seconds: 60 }
workload:
  - { generate: regular, name: first, rate_per_hour: 60, batch: 4, count: 4, vram_mib: 30Gi, duration: 1h,
      activity: { busy: 1m, idle: 50m } }
  - { generate: regular, name: second, rate_per_hour: 6, batch: 4, count: 4, vram_mib: 30Gi, duration: 10m }
`
  const lastStart = ({ events }: { readonly events: readonly Event[] }): number =>
    Math.max(...events.filter(({ kind }) => kind === 'task_started').map(({ at }) => at))

  it('slows down concurrent copies', async () => {
    const [alone, shared] = [await runOf(text('')), await runOf(text(', host_link_mib_per_s: 12288'))]
    // Four swap-outs of 30 GiB at once: 1.25 s each over separate links of 24 GiB/s, 10 s together over 12
    // GiB/s.
    expect(lastStart(shared) - lastStart(alone)).toBe(10_000 - 1250)
  })
})

describe('a limit of GPUs per owner', () => {
  it('makes tasks of one owner wait while GPUs are free', async () => {
    const { result } = await runOf(`fleet: [{ name: a, gpus: 4, gpu: { vram_mib: 40960 } }]
limits: { placed_gpus_per_owner: 2 }
workload:
  - { generate: regular, name: greedy, rate_per_hour: 60, batch: 4, count: 4, vram_mib: 30Gi, duration: 1h,
      owner: greedy }
  - { generate: regular, name: modest, rate_per_hour: 60, batch: 1, count: 1, vram_mib: 30Gi, duration: 1h,
      owner: modest }
`)
    expect(result.metrics.makespan_s).toBe(7200)
  })
})

describe('tasks submitted by an operator', () => {
  const FLEET = 'fleet: [{ name: a, gpu: { vram_mib: 40960 } }]\n'

  it('run as their command says, and count in the result', async () => {
    const { result, operatorFaults } = await runOf(`${FLEET}operator:
  - { at: 10m, post: /api/v1/tasks, body: { name: mine, vram_mib: 8192,
      command: [headroom, work, busy=10m, idle=5m, busy=5m] }, as: mine, expect: 201,
      answer: { name: mine, state: running } }
  - { at: 15m, get: "/api/v1/tasks/{task:mine}", expect: 200,
      answer: { state: running, residency: resident } }
  - { at: 16m, get: /api/v1/nodes, answer: { items: [{ node_id: "{node:a}" }] } }
  - { at: 40m, get: "/api/v1/tasks/{task:mine}", expect: 404 }
`)
    expect(operatorFaults).toEqual([])
    expect(result.metrics.tasks).toEqual({ submitted: 1, completed: 1, failed: 0, unfinished: 0 })
    expect(result.metrics.jct_s?.mean).toBe(1200)
    expect(result.metrics.slowdown?.mean).toBe(1)
  })

  it('without such a command keep running, and the run does not wait for them', async () => {
    const { result, operatorFaults } =
      await runOf(`${FLEET}workload: [{ task: { id: t, vram_mib: 1, run: 1h } }]
operator:
  - { at: 10m, post: /api/v1/tasks, body: { vram_mib: 8192, command: [serve] }, expect: 201 }
  - { at: 20m, post: /api/v1/tasks, body: { vram_mib: 8192, command: [serve] }, as: second, expect: 201,
      idempotency_key: k }
  - { at: 21m, post: /api/v1/tasks, body: { vram_mib: 8192, command: [serve] }, expect: 201,
      idempotency_key: k }
  - { at: 30m, delete: "/api/v1/tasks/{task:second}", expect: 202 }
  - { at: 31m, put: /api/v1/config, body: { safety_reserve_mib: 0 }, if_match: '"nothing"', expect: 412 }
`)
    expect(operatorFaults).toEqual([])
    expect(result.metrics.tasks).toEqual({ submitted: 3, completed: 1, failed: 0, unfinished: 1 })
    // Two tasks share the GPU until the second is cancelled at 30 min; then the task of the operator shares
    // it.
    expect(result.virtual_s).toBeGreaterThan(3600)
    expect(result.virtual_s).toBeLessThan(4 * 3600)
  })

  it('fail the run when they are refused and the scenario does not expect it', async () => {
    const { operatorFaults } = await runOf(`${FLEET}operator:
  - { at: 1h, put: /api/v1/config, body: { default_vram_overcommit: 50 } }
  - { at: 2h, put: /api/v1/config, body: { default_vram_overcommit: 50 }, expect: null }
  - { at: 3h, put: /api/v1/config, body: { default_vram_overcommit: 50 }, expect: 400 }
  - { at: 4h, put: /api/v1/config, body: { default_vram_overcommit_percent: 50 } }
`)
    expect(operatorFaults).toEqual([
      expect.stringMatching(
        new RegExp(
          /^operator at 1h: PUT \/api\/v1\/config was answered 400, which is a refusal /.source +
            /\(`expect` allows one\): \{.*default_vram_overcommit/.source,
        ),
      ) as string,
    ])
  })

  it('are reported when the answer is unexpected', async () => {
    const { operatorFaults } = await runOf(`${FLEET}operator:
  - { at: 1m, get: /api/v1/config, expect: 200, answer: { safety_reserve_mib: 1 } }
  - { at: 2m, get: /api/v1/nodes/none, expect: 200 }
`)
    expect(operatorFaults).toEqual([
      expect.stringContaining(
        'operator at 1m: GET /api/v1/config was answered 200, safety_reserve_mib is 2048, expected is 1: {',
      ) as string,
      expect.stringContaining(
        'operator at 2m: GET /api/v1/nodes/none was answered 404, expected is 200: {',
      ) as string,
    ])
  })
})
