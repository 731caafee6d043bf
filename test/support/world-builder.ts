/**
 * Small simulated worlds for tests: nodes and tasks from short descriptions, operator commands as data (so
 * that a counterexample can be read and kept), and a run to its end under the checker.
 */
import type { ConfigFields } from '../../controller/model/config.ts'
import type { Event } from '../../controller/model/event.ts'
import type { TaskChange } from '../../controller/model/command.ts'
import { RANK_ARRIVAL } from '../../controller/ports/clock.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import type { DurationMs, GpuMode, Mib, NoSwap, Percent, Priority, OnNodeLoss } from '../../protocol/units.ts'
import type { SwapProfile } from '../../simulator/scenario/swap-profiles.ts'
import { makeSource } from '../../simulator/scenario/arrivals.ts'
import type { AllocSteps, ScenarioNode, SimTask } from '../../simulator/scenario/scenario.ts'
import type { Work } from '../../simulator/trace/trace-format.ts'
import type { WorldOptions } from '../../simulator/world/world.ts'
import { World } from '../../simulator/world/world.ts'

export const MINUTE: DurationMs = 60_000
export const HOUR: DurationMs = 3_600_000

/** Swaps that take 0.1 s plus 1 s per GiB: short compared with the idle period, long enough to be visible. */
export const QUICK_SWAP: SwapProfile = { outMibPerS: 1024, inMibPerS: 1024, outFixedMs: 100, inFixedMs: 100 }

/** 30 s and more for half a GiB: tasks wake during a swap. */
export const SLOW_SWAP: SwapProfile = { outMibPerS: 20, inMibPerS: 20, outFixedMs: 5000, inFixedMs: 5000 }

export interface NodeFields {
  readonly name: string
  readonly gpus?: number
  readonly vramMib?: Mib
  readonly groups?: readonly string[]
  readonly reserveMib?: Mib | null
  readonly overcommitPercent?: Percent | null
  readonly hostSwapMib?: Mib
  readonly swap?: SwapProfile
  readonly signalsWanted?: boolean
}

export function node({ name, gpus = 1, vramMib = 1000, ...fields }: NodeFields): ScenarioNode {
  return {
    name,
    gpuCount: gpus,
    gpu: { model: 'test', vramMib, swap: fields.swap ?? QUICK_SWAP, efficiencyPermille: [1000] },
    groups: fields.groups ?? [],
    safetyReserveMib: fields.reserveMib ?? null,
    overcommitPercent: fields.overcommitPercent ?? null,
    hostSwapMib: fields.hostSwapMib ?? 2 * gpus * vramMib,
    signalsWanted: fields.signalsWanted ?? true,
  }
}

export interface TaskFields {
  readonly id: string
  readonly at?: DurationMs
  readonly gpus?: number
  /** Null for an exclusive task that uses all VRAM. */
  readonly vramMib?: Mib | null
  readonly mode?: GpuMode
  readonly noswap?: NoSwap
  readonly priority?: Priority
  readonly groups?: readonly string[]
  readonly work?: Work
  readonly alloc?: AllocSteps
  readonly cancelAt?: DurationMs | null
  readonly onNodeLoss?: OnNodeLoss
  readonly maxRuntimeSeconds?: number | null
}

export function task({ id, vramMib = 400, ...fields }: TaskFields): SimTask {
  return {
    at: fields.at ?? 0,
    request: {
      id,
      name: null,
      vramMib,
      gpuCount: fields.gpus ?? 1,
      gpuMode: fields.mode ?? 'shared',
      noswap: fields.noswap ?? 0,
      priority: fields.priority ?? 2,
      groups: fields.groups ?? [],
      labels: {},
      owner: null,
      command: null,
      maxRuntimeSeconds: fields.maxRuntimeSeconds ?? null,
      onNodeLoss: fields.onNodeLoss ?? 'wait',
    },
    work: fields.work ?? busyFor(HOUR),
    allocSteps: fields.alloc ?? [],
    cancelAt: fields.cancelAt ?? null,
  }
}

/** GPU work without a pause. */
export function busyFor(ms: DurationMs): Work {
  return { kind: 'duration', ms }
}

/** Alternating busy and idle: `phases(busy, idle, busy, idle, …)`. */
export function phases(...ms: readonly DurationMs[]): Work {
  const pairs: [DurationMs, DurationMs][] = []
  for (let i = 0; i < ms.length; i += 2) pairs.push([ms[i] ?? 0, ms[i + 1] ?? 0])
  return { kind: 'phases', phases: pairs }
}

/** Uses its GPU once and then only keeps its VRAM. */
export function idleFor(ms: DurationMs): Work {
  return phases(1, ms)
}

/** An operator action; nodes by name. */
export type Command =
  | { readonly at: DurationMs; readonly config: Partial<ConfigFields> }
  | {
      readonly at: DurationMs
      readonly node: string
      readonly overcommitPercent?: Percent | null
      readonly reserveMib?: Mib | null
    }
  | { readonly at: DurationMs; readonly cordon: string; readonly isCordoned: boolean }
  | { readonly at: DurationMs; readonly group: string; readonly nodes: readonly string[] }
  | { readonly at: DurationMs; readonly task: string; readonly change: TaskChange }
  | {
      readonly at: DurationMs
      readonly byHand: 'hold' | 'release' | 'swap-out' | 'swap-in'
      readonly task: string
    }
  | { readonly at: DurationMs; readonly drain: string; readonly moveAfterMs: DurationMs | null }
  /** A fault: the server process of this node dies and restarts at once. */
  | { readonly at: DurationMs; readonly restart: string }

export interface WorldCase {
  readonly nodes: readonly ScenarioNode[]
  readonly config?: Partial<ConfigFields>
  /** In the order of arrival. */
  readonly tasks: readonly SimTask[]
  readonly commands?: readonly Command[]
}

export interface PlayOptions extends Partial<WorldOptions> {
  /**
   * Virtual time of the end of the run; by default it ends when all tasks have, or nothing is left to happen.
   */
  readonly untilMs?: DurationMs
  /** Before the world starts. */
  readonly onWorld?: (world: World) => void
  /** After every step. */
  readonly onStep?: (world: World) => void
}

export interface WorldRun {
  readonly world: World
  readonly events: readonly Event[]
}

/** A run with more steps than this does not end by itself. */
const MAX_STEPS = 2_000_000

/** Plays the case to its end; without a reserve and with 50 % overcommit by default. */
export async function play(
  { nodes, config, tasks, commands = [] }: WorldCase,
  options: PlayOptions = {},
): Promise<WorldRun> {
  const { untilMs = null, onWorld, onStep, onEvents, ...rest } = options
  const events: Event[] = []
  const world = new World(
    {
      clock: { startMs: 0, untilMs: null, drain: true },
      nodes,
      config: { safety_reserve_mib: 0, default_vram_overcommit_percent: 50, ...config },
    },
    {
      seed: 1,
      isJournalOff: true,
      ...rest,
      onEvents: (batch) => {
        events.push(...batch)
        onEvents?.(batch)
      },
    },
  )
  onWorld?.(world)
  await world.start()
  const left = tasks.toSorted((a, b) => a.at - b.at || tasks.indexOf(a) - tasks.indexOf(b))
  world.feed(makeSource(() => left.shift() ?? null))
  for (const command of commands) world.clock.at(command.at, () => carryOut(world, command), RANK_ARRIVAL)
  await world.runUntil(untilMs, () => {
    onStep?.(world)
    if (world.clock.steps > MAX_STEPS)
      throw new Error(`after ${MAX_STEPS} steps, at ${world.nowMs} ms, the world still runs`)
    return world.isIdle()
  })
  return { world, events }
}

function carryOut(world: World, command: Command): void {
  const { commands } = world.controller
  const ignore = (): void => {}
  if ('restart' in command) world.fleet.node(command.restart).bounce()
  else if ('config' in command) commands.putConfig(command.config, 'test', ignore)
  else if ('node' in command) {
    const { at: _at, node: name, ...change } = command
    commands.putNodeConfig(nodeIdFromName(name), change, null, ignore)
  } else if ('cordon' in command)
    commands.setCordon(nodeIdFromName(command.cordon), command.isCordoned, null, ignore)
  else if ('group' in command) {
    const nodeIds = command.nodes.map(nodeIdFromName).sort((a, b) => (a < b ? -1 : 1))
    commands.putGroup({ id: command.group, description: '', nodeIds }, false, null, ignore)
  } else if ('drain' in command)
    commands.drainNode(nodeIdFromName(command.drain), command.moveAfterMs, 'test', ignore)
  else if ('byHand' in command) doByHand(world, command.byHand, command.task)
  else commands.updateTask(command.task, command.change, null, ignore)
}

function doByHand(
  { controller: { commands } }: World,
  deed: 'hold' | 'release' | 'swap-out' | 'swap-in',
  task: string,
): void {
  const ignore = (): void => {}
  switch (deed) {
    case 'hold':
      return commands.holdTask(task, 'test', ignore)
    case 'release':
      return commands.releaseTask(task, 'test', ignore)
    case 'swap-out':
      return commands.swapOutTask(task, 'test', ignore)
    case 'swap-in':
      return commands.swapInTask(task, 'test', ignore)
  }
}
