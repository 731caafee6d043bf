/**
 * The same scenario in real time: the controller over SQLite, a broker, and process servers. External events
 * happen at the times of the scenario.
 */
import { existsSync, readFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import type { DurationMs, Mib } from '../../protocol/units.ts'
import type { Scenario, ScenarioNode } from '../../simulator/scenario/scenario.ts'
import type { SwapProfile } from '../../simulator/scenario/swap-profiles.ts'
import { LiveCluster, until } from '../support/live-cluster.ts'
import { decisionsIn, type Happened, type Outcome } from './outcome.ts'
import { taskCommand } from './task-command.ts'
import { wakesOf } from './wakes.ts'

const ENDS_WITHIN_MS = 180_000

/** The servers and tasks of a real run. */
export interface Site {
  /** Environment variables of the controller, in addition to those of the test cluster. */
  readonly controllerEnv?: Readonly<Record<string, string>>
  /** Resolves once it is up. */
  readonly startServer: (cluster: LiveCluster, node: ScenarioNode) => Promise<unknown>
  /**
   * @param note the file to which the task writes the path of its control socket @param vramMib null for a
   * whole GPU
   */
  readonly command: (note: string, phases: Phases, vramMib: Mib | null) => readonly string[]
}

export type Phases = ReadonlyArray<readonly [busyMs: DurationMs, idleMs: DurationMs]>

const DECLARED_GPUS: Site = {
  startServer: (cluster, node) => cluster.startServer(node.name, inventoryOf(node)),
  command: taskCommand,
}

interface TaskItem {
  readonly id: string
  readonly name: string
  readonly submitted_at: string
  readonly first_started_at: string
  readonly finished_at: string
}

export async function runReally(scenario: Scenario, site: Site = DECLARED_GPUS): Promise<Outcome> {
  const cluster = await LiveCluster.start(site.controllerEnv)
  try {
    await cluster.send('PUT', '/config', { ...scenario.config, heartbeat_seconds: 1 })
    for (const node of scenario.nodes) await site.startServer(cluster, node)
    const nodes = new Map((await nodesOf(cluster)).map(({ node_id, name }) => [name, node_id]))
    const startedAt = performance.now()
    const startedOn = Date.now()
    const reach = (ms: number): Promise<void> =>
      new Promise((resolve) => setTimeout(resolve, Math.max(0, startedAt + ms - performance.now())))
    const actions = scenario.operator.map(async ({ atMs, method, path, body }) => {
      await reach(atMs)
      const there = path
        .replace('/api/v1', '')
        .replace(/\{node:([^}]+)\}/g, (_, name: string) => nodes.get(name) ?? name)
      await cluster.send(method.toUpperCase() as 'PUT' | 'POST', there, body ?? undefined)
    })
    await Promise.all([...actions, ...tasksOf(scenario).map((task) => play(cluster, task, site, reach))])
    return await outcomeOf(cluster, scenario, startedOn)
  } finally {
    await cluster.end()
  }
}

type PlannedTask = ReturnType<typeof tasksOf>[number]

function tasksOf(scenario: Scenario) {
  return scenario.workload.map((item) => {
    if (item.kind !== 'task' || item.work.kind !== 'phases')
      throw new Error(`${scenario.name}: tasks with phases only`)
    return { atMs: item.atMs, request: item.request, phases: item.work.phases }
  })
}

/** Submits it, signals new work while it is stopped, and waits for its end. */
async function play(
  cluster: LiveCluster,
  { atMs, request, phases }: PlannedTask,
  site: Site,
  reach: (ms: number) => Promise<void>,
): Promise<void> {
  const note = cluster.path(`${request.id}.note`)
  await reach(atMs)
  const { id } = await cluster.send<{ readonly id: string }>('POST', '/tasks', {
    name: request.id,
    vram_mib: request.vramMib,
    gpu_count: request.gpuCount,
    priority: request.priority,
    noswap: request.noswap,
    command: site.command(note, phases, request.vramMib),
  })
  await until(
    `${request.id} runs`,
    () => existsSync(note) && readFileSync(note, 'utf8') !== '',
    ENDS_WITHIN_MS,
  )
  const ranFrom = performance.now()
  let offsetMs = 0
  for (const [busyMs, idleMs] of phases.slice(0, -1)) {
    offsetMs += busyMs + idleMs
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, ranFrom + offsetMs - performance.now())))
    const { residency } = await cluster.get<{ readonly residency: string }>(`/tasks/${id}`)
    if (residency === 'swapped_out') createConnection(readFileSync(note, 'utf8')).end('{"want": true}\n')
  }
  const isOver = async (): Promise<boolean> => (await stateOf(cluster, id)) === 'completed'
  await until(`${request.id} is over`, isOver, ENDS_WITHIN_MS)
}

/** Throws when the task has failed: it will not complete. */
async function stateOf(cluster: LiveCluster, id: string): Promise<string> {
  const { name, state, end_reason } = await cluster.get<{
    readonly name: string
    readonly state: string
    readonly end_reason?: string | null
  }>(`/tasks/${id}`)
  if (state === 'failed' || state === 'cancelled')
    throw new Error(`${name}: ${state}, ${end_reason ?? 'no reason given'}`)
  return state
}

/** As in an inventory and in a scenario. */
export function swapEntry({ outMibPerS, inMibPerS, outFixedMs, inFixedMs }: SwapProfile) {
  return {
    out_mib_per_s: outMibPerS,
    in_mib_per_s: inMibPerS,
    out_fixed_ms: outFixedMs,
    in_fixed_ms: inFixedMs,
  }
}

export function inventoryOf({ gpu, gpuCount }: ScenarioNode): string {
  const swap = swapEntry(gpu.swap)
  return JSON.stringify({
    gpus: Array.from({ length: gpuCount }, () => ({ model: gpu.model, vram_mib: gpu.vramMib, swap })),
  })
}

async function outcomeOf(cluster: LiveCluster, scenario: Scenario, startedOn: number): Promise<Outcome> {
  const tasks = (await cluster.get<{ readonly items: readonly TaskItem[] }>('/tasks?state=all&limit=200'))
    .items
  const nodes = await nodesOf(cluster)
  const names = new Map([
    ...tasks.map(({ id, name }) => [id, name] as const),
    ...nodes.map(({ node_id, name }) => [node_id, name] as const),
  ])
  const events = await eventsOf(cluster)
  const waits = tasks.map(
    ({ submitted_at, first_started_at }) => (Date.parse(first_started_at) - Date.parse(submitted_at)) / 1000,
  )
  const endedOn = Math.max(...tasks.map(({ finished_at }) => Date.parse(finished_at)))
  const gpus = scenario.nodes.reduce((sum, { gpuCount }) => sum + gpuCount, 0)
  const counted = await countersOf(cluster)
  const demand = counted('demand_seconds_total{part="served"}') + lost(counted)
  return {
    ...decisionsIn(events, startedOn, (id) => names.get(id) ?? id),
    queueWaitS: waits.reduce((sum, s) => sum + s, 0) / waits.length,
    starvationPercent: (100 * lost(counted)) / demand,
    utilizationPercent: (100 * counted('busy_seconds_total')) / (((endedOn - startedOn) / 1000) * gpus),
    wakesS: wakesOf(scenario, events, (id) => names.get(id) ?? id),
  }
}

/** All events of the cluster, in order. */
export async function eventsOf(cluster: LiveCluster): Promise<readonly Happened[]> {
  const events: Happened[] = []
  for (let after = 0; ;) {
    const page = await cluster.get<{ readonly items: readonly LiveEvent[]; readonly next_after: number }>(
      `/events?after=${after}&limit=200`,
    )
    events.push(
      ...page.items.map(({ at, kind, task_id, node_id, data }) => ({
        at: Date.parse(at),
        kind,
        task: task_id ?? null,
        node: node_id ?? null,
        data,
      })),
    )
    if (page.items.length === 0) break
    after = page.next_after
  }
  return events
}

async function nodesOf(
  cluster: LiveCluster,
): Promise<readonly { readonly node_id: string; readonly name: string }[]> {
  return (
    await cluster.get<{ readonly items: readonly { readonly node_id: string; readonly name: string }[] }>(
      '/nodes',
    )
  ).items
}

interface LiveEvent {
  readonly at: string
  readonly kind: string
  readonly task_id?: string
  readonly node_id?: string
  readonly data: Readonly<Record<string, unknown>>
}

function lost(counted: (name: string) => number): number {
  return ['queue', 'swap', 'compute'].reduce(
    (sum, part) => sum + counted(`demand_seconds_total{part="${part}"}`),
    0,
  )
}

async function countersOf(cluster: LiveCluster): Promise<(name: string) => number> {
  const text = await (await fetch(`${cluster.url}/metrics`)).text()
  return (name) => {
    const line = text.split('\n').find((each) => each.startsWith(`headroom_gpu_${name} `))
    if (line === undefined) throw new Error(`/metrics has no headroom_gpu_${name}`)
    return Number(line.split(' ')[1])
  }
}
