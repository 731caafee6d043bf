/**
 * Everything that the REST API accepts survives: a cluster with arbitrary names passes through snapshot,
 * planning, recording and re-deciding. All requests are drawn and must be accepted by the real routes in a
 * simulated world.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openOperatorClient } from '../../services/runs/operator-client.ts'
import { GROUP_ID_PATTERN, isPlainName } from '../../controller/model/group.ts'
import { NO_OWNER_LIMITS } from '../../controller/model/owner-limits.ts'
import type { Views } from '../../controller/query/views.ts'
import { redecide } from '../../simulator/experiment/recording/redecide.ts'
import { recordScenario } from '../../simulator/experiment/recording/record-scenario.ts'
import type { RunPlan } from '../../simulator/run/run.ts'
import { runScenario } from '../../simulator/run/run.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import type { OperatorAction, OperatorMethod } from '../../simulator/scenario/scenario.ts'
import { snapshotText } from '../../simulator/snapshot/snapshot-text.ts'
import { snapshotOfLive } from '../../simulator/twin/live-snapshot.ts'
import { holdsInTime } from '../support/drawn-cases.ts'
import { RecordingInMemory } from '../support/recording-in-memory.ts'
import { MINUTE, node, task } from '../support/world-builder.ts'

const FILE = 'test/property/accepted-survives.test.ts'
const IDENTITY = { scenarioSha256: null, traceSha256: null, version: 'test' }
const NO_PAST = { from: 0, to: 0, ended: [], runs: { wantingMs: [], idleMs: [] }, speeds: [] }
const UNTIL_MS = 2 * MINUTE

const LETTERS = [...'abzAZ09', 'ü', 'ß', 'é', 'Ж', '漢', 'か', '٣', 'ه', '𠮷', 'ı']
const INSIDE = [...LETTERS, ' ', '.', '-', '_', '  ']

const groupName = fc
  .tuple(
    fc.constantFrom(...LETTERS),
    fc.array(fc.constantFrom(...INSIDE), { maxLength: 60 }),
    fc.constantFrom(...LETTERS, '.', '-', '_'),
  )
  .map(([first, inside, last]) => `${first}${inside.join('')}${last}`)
  .filter((name) => isPlainName(name) && new RegExp(GROUP_ID_PATTERN, 'u').test(name))

const line = (maxLength: number) =>
  fc.oneof(
    fc.string({ unit: 'grapheme', minLength: 1, maxLength }).filter(isLine(maxLength)),
    fc.constantFrom(
      '#1',
      '- a: [b',
      '"',
      "'",
      ' ',
      'null',
      '1e3',
      '\u2028',
      '\u0085',
      '~',
      '%20',
      '<<',
      '&a *a',
    ),
  )

function isLine(maxLength: number): (text: string) => boolean {
  return (text) => text.length > 0 && text.length <= maxLength && !/[\u0000-\u001f\u007f]/.test(text)
}

const taskArb = fc.record({
  name: fc.option(line(200)),
  vramMib: fc.integer({ min: 1, max: 900 }),
  priority: fc.integer({ min: 0, max: 4 }),
  noswap: fc.constantFrom(0, 1),
  groups: fc.array(fc.nat(5), { maxLength: 3 }),
  labels: fc.dictionary(
    // No JSON body may have a field of that name.
    line(64).filter((key) => key !== '__proto__'),
    fc.string({ unit: 'grapheme', maxLength: 256 }).filter((text) => text.length <= 256),
    { maxKeys: 3 },
  ),
  isExclusive: fc.boolean(),
})

const clusterArb = fc.record({
  nodes: fc.uniqueArray(
    fc.record({
      name: fc.oneof(line(60), fc.constantFrom('gpu-1.example.com', 'gpu 1', 'Knoten Ä', '日本')),
      model: fc.oneof(fc.constant(''), line(200)),
      gpus: fc.integer({ min: 1, max: 3 }),
    }),
    { minLength: 1, maxLength: 3, selector: ({ name }) => name },
  ),
  groups: fc.uniqueArray(fc.tuple(groupName, fc.array(fc.nat(2), { maxLength: 2 })), {
    maxLength: 4,
    selector: ([name]) => name,
  }),
  tasks: fc.array(taskArb, { minLength: 1, maxLength: 6 }),
  owner: fc.oneof(line(100), fc.constantFrom('nats:trainer', 'ann@example.com', 'gpu_admins')),
  overcommit: fc.constantFrom(0, 37, 1000),
})
type Cluster = typeof clusterArb extends fc.Arbitrary<infer T> ? T : never

const nodeId = (index: number): string => `5f0c9a52-1d3e-4b7a-9c11-00000000000${index}`

function planOf(cluster: Cluster): RunPlan {
  const nodes = cluster.nodes.map(({ name, model, gpus }, index) => {
    const base = node({ name, gpus })
    return { ...base, id: nodeId(index), gpu: { ...base.gpu, model } }
  })
  const ids = nodes.map((each) => each.id)
  const groupAt = (index: number) => cluster.groups[index % Math.max(1, cluster.groups.length)]?.[0]
  const actions: OperatorAction[] = []
  const ask = (method: OperatorMethod, path: string, body: unknown): void => {
    actions.push({ atMs: 1_000 * (actions.length + 1), method, path, body, expect: 'accepted' })
  }
  ask('put', '/api/v1/config', {
    default_vram_overcommit_percent: cluster.overcommit,
    safety_reserve_mib: 50,
  })
  for (const [id, members] of cluster.groups) {
    const nodeIds = [...new Set(members.map((index) => ids[index % ids.length] as string))]
    ask('post', '/api/v1/groups', { id, node_ids: nodeIds.slice(0, 1) })
    ask('put', `/api/v1/groups/${encodeURIComponent(id)}`, { node_ids: nodeIds })
  }
  for (const { name, groups, isExclusive, vramMib, ...rest } of cluster.tasks) {
    const { noswap, priority, labels } = rest
    const targets = [...new Set(groups.map(groupAt).filter((each) => each !== undefined))]
    const mode = isExclusive ? { gpu_mode: 'exclusive' } : { vram_mib: vramMib }
    ask('post', '/api/v1/tasks', {
      ...(name === null ? {} : { name }),
      ...mode,
      noswap,
      priority,
      labels,
      groups: targets,
      command: ['x'],
    })
  }
  const owned = { ...task({ id: 'owned', vramMib: 100 }).request, owner: cluster.owner }
  return {
    seed: 1,
    clock: { startMs: 1_770_000_000_000, untilMs: UNTIL_MS, drain: false },
    nodes,
    config: {},
    ownerLimits: NO_OWNER_LIMITS,
    workload: [
      {
        kind: 'task',
        atMs: 0,
        request: owned,
        work: { kind: 'duration', ms: 1e9 },
        allocSteps: [],
        cancelAtMs: null,
      },
    ],
    operator: actions,
  }
}

/** Groups with their member nodes. */
function groupsIn(views: Views): unknown {
  return new Map(
    [...views.groups()].filter(({ nodeIds }) => nodeIds.length > 0).map(({ id, nodeIds }) => [id, nodeIds]),
  )
}

function tasksIn(views: Views): unknown {
  return [...views.openTasks()].map(({ spec, placement }) => [
    spec.name,
    spec.owner,
    spec.groups,
    placement?.node.id ?? null,
  ])
}

describe('a cluster accepted by the API', () => {
  it(
    'passes through snapshot, planning, recording and re-deciding, whatever its names',
    { timeout: 300_000 },
    async () => {
      const property = fc.asyncProperty(clusterArb, async (cluster) => {
        const tape = new RecordingInMemory()
        const { world, operatorFaults } = await runScenario(planOf(cluster), IDENTITY, {
          openOperatorClient,
          record: tape.recorder,
        })
        expect(operatorFaults).toEqual([])
        const { views } = world.controller

        const { snapshot, description } = snapshotOfLive(views.snapshot(), NO_PAST)
        const text = [
          ...snapshotText(snapshot, { name: 'live', description, untilMs: MINUTE, isCutOff: true }),
        ].join('')
        const { scenario } = loadScenario({ text, baseDir: '/nowhere' })
        const again = await runScenario(scenario, IDENTITY, {})
        expect(tasksIn(again.world.controller.views)).toEqual(tasksIn(views))
        expect(groupsIn(again.world.controller.views)).toEqual(groupsIn(views))
        for (const overcommitPercent of [0, 100]) await runScenario(scenario, IDENTITY, { overcommitPercent })

        const recorded = await recordScenario(tape.entries(), { from: null, to: null, name: 'recorded' })
        const replay = await runScenario(
          loadScenario({ text: recorded?.text ?? '', baseDir: '/nowhere' }).scenario,
          IDENTITY,
          { openOperatorClient },
        )
        expect(groupsIn(replay.world.controller.views)).toEqual(groupsIn(views))
        expect(tasksIn(replay.world.controller.views)).toEqual(tasksIn(views))
        expect((await redecide(tape.entries())).difference).toBeNull()
      })
      await holdsInTime(property, 12, FILE)
    },
  )
})
