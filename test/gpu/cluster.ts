/**
 * A complete cluster on GPU 0: broker, production controller, production server. First a scenario in virtual
 * time and on the GPU, with the swap profile that was measured just before; then PyTorch programs that are
 * unaware of Headroom and together need more memory than they are given.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Mib } from '../../protocol/units.ts'
import { stringify } from 'yaml'
import type { SwapProfile } from '../../simulator/scenario/swap-profiles.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { calibrateStart } from '../fidelity/calibrate-start.ts'
import { compare } from '../fidelity/outcome.ts'
import { eventsOf, runReally, type Site } from '../fidelity/real-run.ts'
import { runVirtually } from '../fidelity/virtual-run.ts'
import { LiveCluster, until } from '../support/live-cluster.ts'
import { compile } from './cuda-program.ts'
import { expect, say } from './say.ts'

export interface Gpu {
  /** Example: `570.86.15`. */
  readonly driver: string
  readonly model: string
  readonly physicalMib: Mib
}

/** Usable part of GPU 0, the rest is reserve: swaps then take seconds, not half a minute. */
export const USABLE_MIB: Mib = 20_480
/** Memory that a task may need besides its own allocations: CUDA's context and code. */
const CONTEXT_MIB: Mib = 1024
export const PYTORCH_CONTEXT_MIB: Mib = 2048
export const NODE = 'gpu-host'
/** A trial store refuses real GPUs. */
export const LIVE_STORE = { CONTROLLER_STORE_KIND: 'live' }
/**
 * Its tasks run for a time, not an amount of work: several busy tasks do not slow each other down, in
 * thousandths.
 */
const UNSLOWED = [1000, 2000, 3000]

/** Decisions must be equal; figures are printed. */
export async function compareWithSimulation(gpu: Gpu, profile: SwapProfile): Promise<void> {
  const folder = folderForTasks('headroom-gpu-cluster-')
  try {
    const worker = compile('worker', folder)
    const file = join(folder, 'gpu.scenario.yaml')
    writeFileSync(file, stringify(scenarioOf(gpu, profile)))
    const { medianMs } = await calibrateStart()
    const virtual = await runVirtually(file, join(folder, 'virtual'), medianMs)
    const real = await runReally(loadScenario(file).scenario, nvidiaSite(worker))
    const { difference, decisions, figures, closestMs } = compare('gpu', virtual, real)
    expect(
      difference === null,
      difference ?? `all ${decisions} decisions are those of the simulation, at least ${closestMs} ms apart`,
    )
    for (const { name, virtual: ours, real: theirs, differencePercent } of figures)
      say(
        `${name.padEnd(20)} virtual ${ours.toFixed(3)}  on the GPU ${theirs.toFixed(3)}  ` +
          `${differencePercent.toFixed(2)} %`,
      )
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Two idle tasks are swapped out for others, wait, and return when they have work; one task is noswap. */
function scenarioOf(
  { model, physicalMib }: Gpu,
  { outMibPerS, inMibPerS, outFixedMs, inFixedMs }: SwapProfile,
): object {
  const swap = {
    out_mib_per_s: outMibPerS,
    in_mib_per_s: inMibPerS,
    out_fixed_ms: outFixedMs,
    in_fixed_ms: inFixedMs,
  }
  const task = (
    id: string,
    at: string,
    vramMib: Mib,
    phases: ReadonlyArray<readonly [string, string]>,
    more: object = {},
  ): object => ({
    task: { id, at, vram_mib: vramMib, work: { kind: 'phases', phases }, ...more },
  })
  return {
    scenario: 'fidelity-gpu',
    version: 1,
    seed: 1,
    fleet: [{ name: NODE, gpu: { model, vram_mib: physicalMib, swap, efficiency: UNSLOWED } }],
    config: {
      default_vram_overcommit_percent: 150,
      safety_reserve_mib: physicalMib - USABLE_MIB,
      idle_swap_out_seconds: 6,
    },
    workload: [
      task('stays', '0s', 4_000, [['120s', '0s']], { noswap: 1 }),
      task('first', '5s', 12_000, [
        ['9s', '66s'],
        ['8s', '0s'],
      ]),
      task('late', '30s', 12_000, [['20s', '0s']]),
      task('urgent', '40s', 10_000, [['6s', '0s']], { priority: 0 }),
      task('last', '64s', 12_000, [
        ['5s', '45s'],
        ['5s', '0s'],
      ]),
    ],
  }
}

function nvidiaSite(worker: string): Site {
  return {
    controllerEnv: LIVE_STORE,
    startServer: (cluster) => cluster.startNvidiaServer(NODE),
    command: (note, phases, vramMib) => {
      if (vramMib === null) throw new Error('A task of this scenario declares its VRAM.')
      const steps = phases.flatMap(([busyMs, idleMs]) => [
        `busy:${busyMs}`,
        ...(idleMs > 0 ? [`idle:${idleMs}`] : []),
      ])
      return [worker, note, String(vramMib - CONTEXT_MIB), ...steps]
    },
  }
}

/** Where the programs of a task run: on the host itself, or in a container. */
export interface Place {
  /** The compiled `worker`, as the task names it. */
  readonly worker: string
  /** A folder of the task in which it may write. */
  readonly notes: string
  /** More fields of each task. */
  readonly task: object
  readonly serverOptions: readonly string[]
}

export async function outliveServer(gpu: Gpu): Promise<void> {
  const folder = folderForTasks('headroom-gpu-server-')
  try {
    const worker = compile('worker', folder)
    await outliveServerAt({ worker, notes: folder, task: {}, serverOptions: [] }, gpu)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/**
 * A server that is killed while a task is swapped out finds the task in the same state and returns it: the
 * task ends well only if its data is unchanged. @param look examines the task that took its place
 */
export async function outliveServerAt(
  { worker, notes, task, serverOptions }: Place,
  { physicalMib }: Gpu,
  look: (id: string) => void = () => {},
): Promise<void> {
  const cluster = await LiveCluster.start(LIVE_STORE)
  try {
    await cluster.send('PUT', '/config', {
      default_vram_overcommit_percent: 100,
      safety_reserve_mib: physicalMib - USABLE_MIB,
      idle_swap_out_seconds: 2,
      swap_in_probe_seconds: 5,
      heartbeat_seconds: 1,
    })
    const server = await cluster.startNvidiaServer(NODE, ...serverOptions)
    const submit = async (name: string, vramMib: Mib, steps: readonly string[]): Promise<string> => {
      const command = [worker, join(notes, name), String(vramMib - CONTEXT_MIB), ...steps]
      const fields = { name, vram_mib: vramMib, command, ...task }
      return (await cluster.send<TaskItem>('POST', '/tasks', fields)).id
    }
    const shown = (id: string): Promise<TaskItem> => cluster.get(`/tasks/${id}`)
    const leaves = await submit('leaves', 6_000, ['busy:3000', 'idle:30000', 'busy:2000'])
    const takes = await submit('takes', 18_000, ['busy:10000'])
    await until('the second runs where the first was', async () => isRunning(await shown(takes)), 60_000)
    look(takes)
    await server.end('SIGKILL')
    await server.start(() => true)
    expect(
      (await shown(leaves)).residency === 'swapped_out',
      'its server is killed and restarted while a task is swapped out',
    )
    for (const id of [takes, leaves]) {
      await until('both tasks are over', async () => isOver(await shown(id)), 60_000)
      const { state, end_reason } = await shown(id)
      const which = id === leaves ? 'the one that was swapped out' : 'the one that took its place'
      expect(state === 'completed', `${which} ends well (${state}, ${end_reason ?? 'exit 0'})`)
    }
  } catch (error) {
    await sayWhatIsKnown(cluster)
    throw error
  } finally {
    await cluster.end()
  }
}

/** What the controller knows of each task, and the task's output. */
async function sayWhatIsKnown(cluster: LiveCluster): Promise<void> {
  const { items } = await cluster.get<{ readonly items: readonly TaskItem[] }>('/tasks?state=all')
  for (const task of items) {
    say(JSON.stringify(task))
    for (const stream of ['stdout', 'stderr']) say(await outputOf(cluster, task.id, stream).catch(String))
  }
}

async function outputOf(cluster: LiveCluster, id: string, stream = 'stdout'): Promise<string> {
  const { data } = await cluster.get<{ readonly data: string }>(`/tasks/${id}/logs?stream=${stream}`)
  return Buffer.from(data, 'base64').toString().trim().replaceAll('\n', '; ')
}

function isRunning({ state }: TaskItem): boolean {
  return state === 'running'
}

export function isOver({ state }: Pick<TaskItem, 'state'>): boolean {
  return ['completed', 'failed', 'cancelled', 'lost'].includes(state)
}

/** Each task has a separate uid: it runs a program from this folder and writes a file to it. */
export function folderForTasks(prefix: string): string {
  const folder = mkdtempSync(join(tmpdir(), prefix))
  chmodSync(folder, 0o777)
  return folder
}

const PROGRAMS = 3
const PROGRAM_MIB: Mib = 9_000
const BURSTS = 3
const BUSY_S = 5
const IDLE_S = 30
const ALL_WITHIN_MS = 300_000

interface TaskItem {
  readonly id: string
  readonly name: string
  readonly state: string
  readonly residency: string | null
  readonly end_reason: string | null
}

/** Returns null, or the reason why PyTorch is missing. */
export function whyNoPyTorch(): string | null {
  try {
    execFileSync('python3', ['-c', 'import torch; assert torch.cuda.is_available()'], { stdio: 'ignore' })
    return null
  } catch {
    return 'python3 has no PyTorch with CUDA'
  }
}

/**
 * All are admitted at once, alternate in VRAM and end well. Their activity is measured from outside; probes
 * find out whether they want the GPU.
 */
export async function serveUnawarePrograms({ physicalMib }: Gpu): Promise<void> {
  const cluster = await LiveCluster.start(LIVE_STORE)
  try {
    await cluster.send('PUT', '/config', {
      default_vram_overcommit_percent: 100,
      safety_reserve_mib: physicalMib - USABLE_MIB,
      idle_swap_out_seconds: 3,
      swap_in_probe_seconds: 20,
      heartbeat_seconds: 1,
    })
    await cluster.startNvidiaServer(NODE)
    const began = performance.now()
    const command = [
      'python3',
      join(import.meta.dirname, 'serving.py'),
      ...[PROGRAM_MIB - PYTORCH_CONTEXT_MIB, BURSTS, BUSY_S, IDLE_S].map(String),
    ]
    for (let i = 0; i < PROGRAMS; i++)
      await cluster.send('POST', '/tasks', {
        name: `serving-${i}`,
        vram_mib: PROGRAM_MIB,
        command: ['/usr/bin/env', ...command],
      })
    const tasks = async (): Promise<readonly TaskItem[]> =>
      (await cluster.get<{ readonly items: readonly TaskItem[] }>('/tasks?state=all&limit=200')).items
    await until('all programs have ended', async () => (await tasks()).every(isOver), ALL_WITHIN_MS)
    const seconds = (performance.now() - began) / 1000
    for (const { id, name, state, end_reason } of await tasks()) {
      say(`${name}: ${await outputOf(cluster, id)}`)
      expect(state === 'completed', `${name} ${state}${end_reason === null ? '' : `, ${end_reason}`}`)
    }
    const moved = (await eventsOf(cluster)).filter(
      ({ kind, data }) => kind === 'task_residency' && data['residency'] === 'swapped_out',
    )
    expect(
      moved.length > 0,
      `${PROGRAMS} × ${PROGRAM_MIB} MiB in ${USABLE_MIB} MiB: ${moved.length} swap-outs, all ended ` +
        `after ${seconds.toFixed(0)} s`,
    )
  } finally {
    await cluster.end()
  }
}
