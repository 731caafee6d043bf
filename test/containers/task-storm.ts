/**
 * A storm on tasks in containers: server and broker are killed at random while tasks are swapped. Each
 * attempt writes ticks to its private folder; the verdict comes from these files, not from reports.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import type { LiveCluster, Member } from '../support/live-cluster.ts'

export interface TaskStormPlan {
  readonly seed: string
  readonly tasks: number
  readonly kills: number
  /** Open tasks at the same time. */
  readonly atOnce: number
  readonly image: string
}

export interface TaskStormVerdict {
  readonly tasks: number
  readonly completed: number
  readonly attempts: number
  readonly kills: Readonly<Record<'server' | 'broker', number>>
  readonly swapOuts: number
  /** Tasks that never ended, or ended otherwise than by completion. */
  readonly lost: readonly string[]
  readonly twice: readonly string[]
}

interface Task {
  readonly id: string
  readonly state: string
  readonly swap_outs: number
  readonly end_reason: string | null
}

/** Three of them fill the GPU; with the overcommit of the cluster eight fit. */
const VRAM_MIB = 2_700
const FINAL = new Set(['completed', 'failed', 'cancelled', 'lost'])
const SETTLE_MS = 600_000
const LOOK_EVERY_MS = 500
/** Hundredths of a second since boot, the same clock in every container. */
const TICKS =
  'i=0; while [ $i -lt $0 ]; do read t x < /proc/uptime; echo $t >> /headroom/work/ticks; ' +
  'busybox sleep 0.1; i=$((i+1)); done; echo done >> /headroom/work/ticks'

export async function runStorm(
  live: LiveCluster,
  server: Member,
  plan: TaskStormPlan,
): Promise<TaskStormVerdict> {
  const random = createSeededRandom(plan.seed).stream('container-storm')
  const tasks = new Map<string, Task>()
  const striking = strike(live, server, plan, random)
  const loading = load(live, plan, random, tasks)
  const [kills] = await Promise.all([striking, loading])
  await settle(live, tasks)
  const all = [...tasks.values()]
  return {
    tasks: all.length,
    completed: all.filter(({ state }) => state === 'completed').length,
    swapOuts: all.reduce((sum, task) => sum + task.swap_outs, 0),
    kills,
    lost: all
      .filter(({ state }) => state !== 'completed')
      .map(({ id, state, end_reason: reason }) => `${id} ${state} ${reason}`),
    ...runsIn(join(live.path(server.name), 'work'), [...tasks.keys()]),
  }
}

async function load(
  live: LiveCluster,
  plan: TaskStormPlan,
  random: () => number,
  tasks: Map<string, Task>,
): Promise<void> {
  for (let n = 0; n < plan.tasks; n++) {
    while ([...tasks.values()].filter(({ state }) => !FINAL.has(state)).length >= plan.atOnce) {
      await sleep(LOOK_EVERY_MS)
      await look(live, tasks)
    }
    const ticks = String(10 + Math.floor(random() * 30))
    const command = ['sh', '-c', TICKS, ticks]
    const task = await live.send<Task>('POST', '/tasks', {
      name: `storm-${n}`,
      vram_mib: VRAM_MIB,
      image: plan.image,
      on_node_loss: 'requeue',
      command,
    })
    tasks.set(task.id, task)
  }
}

async function strike(
  live: LiveCluster,
  server: Member,
  { kills }: TaskStormPlan,
  random: () => number,
): Promise<TaskStormVerdict['kills']> {
  const done = { server: 0, broker: 0 }
  for (let n = 0; n < kills; n++) {
    await sleep(2_000 + random() * 6_000)
    const victim = n < 2 ? (['server', 'broker'] as const)[n] : random() < 0.7 ? 'server' : 'broker'
    if (victim === 'broker') {
      await live.broker.end('SIGKILL')
      await live.startBroker()
      done.broker += 1
    } else {
      await server.end('SIGKILL')
      const before = server.output.length
      await server.start(() => server.output.slice(before).includes('GPU server runs'))
      done.server += 1
    }
  }
  return done
}

async function settle(live: LiveCluster, tasks: Map<string, Task>): Promise<void> {
  const deadline = performance.now() + SETTLE_MS
  while ([...tasks.values()].some(({ state }) => !FINAL.has(state)) && performance.now() < deadline) {
    await sleep(LOOK_EVERY_MS)
    await look(live, tasks)
  }
}

async function look(live: LiveCluster, tasks: Map<string, Task>): Promise<void> {
  for (const [id, { state }] of tasks)
    if (!FINAL.has(state)) tasks.set(id, await live.get<Task>(`/tasks/${id}`))
}

/** Twice: two attempts of a task at the same time, or one after another was done. */
export function runsIn(folder: string, ids: readonly string[]): Pick<TaskStormVerdict, 'attempts' | 'twice'> {
  const twice: string[] = []
  let attempts = 0
  // Of living attempts, and of ended ones, which the server keeps apart.
  const folders = [folder, join(folder, '.ended')].filter(existsSync)
  const paths = folders.flatMap((parent) => readdirSync(parent).map((name) => join(parent, name)))
  for (const id of ids) {
    const runs = paths
      .filter((path) => basename(path).startsWith(`${id}.`) && existsSync(join(path, 'ticks')))
      .map((path) => readFileSync(join(path, 'ticks'), 'utf8').trim().split('\n'))
      .map((lines) => ({ first: Number(lines[0]), lines, isDone: lines.at(-1) === 'done' }))
      .toSorted((a, b) => a.first - b.first)
    attempts += runs.length
    runs.slice(1).forEach(({ first }, i) => {
      const before = runs[i]
      if (before === undefined) return
      const last = Math.max(...before.lines.filter((line) => line !== 'done').map(Number))
      if (before.isDone || first <= last) twice.push(id)
    })
    if (!runs.some(({ isDone }) => isDone)) twice.push(`${id} completed without its end`)
  }
  return { attempts, twice }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
