/** Real guards with real tasks in a separate folder; all of them end with the test file. */
import { fork, type ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEachFile } from './endings.ts'
import { bootTime } from '../../gpu-server/guard/boot-time.ts'
import { removeCgroup } from '../../gpu-server/guard/guard-cgroup.ts'
import { readStarted } from '../../gpu-server/guard/guard-folder.ts'
import { guardProgram } from '../../gpu-server/guard/guard-program.ts'
import type { GuardedTask, Guards, LaunchSpec } from '../../gpu-server/guard/guards.ts'
import { openGuards, type GuardsOptions } from '../../gpu-server/guard/local-guards.ts'
import { isRunnable, processesWith } from '../../gpu-server/guard/process-table.ts'
import type { GuardServerCall } from './guard-server.ts'
import { UNMEASURED } from './headroom-command.ts'

const WITHIN_MS = 100_000
const LONG_LEASE_MS = 600_000

export const isRoot = process.getuid?.() === 0
export const NOBODY = 65534

const folders = new Set<string>()
const children = new Set<ChildProcess>()
const opened = new Set<Guards>()
afterEachFile(async () => {
  for (const guards of opened) guards.close()
  for (const child of children) child.kill('SIGKILL')
  for (const folder of folders) {
    for (const attempt of attemptFolders(folder)) await killAll(attempt)
    rmSync(folder, { recursive: true, force: true })
  }
  for (const all of [opened, children, folders]) all.clear()
})

export function newGuardFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'headroom-guards-'))
  folders.add(folder)
  return folder
}

/** Resolves with the result of `fact` once it is not null, false or undefined. */
export async function until<T>(what: string, fact: () => T | null | undefined | false): Promise<T> {
  const deadline = performance.now() + WITHIN_MS
  for (;;) {
    const seen = fact()
    if (seen !== null && seen !== undefined && seen !== false) return seen
    if (performance.now() > deadline) throw new Error(`not within ${WITHIN_MS / 1000} s: ${what}`)
    await delay(10)
  }
}

export interface GuardWorld {
  readonly folder: string
  readonly guards: Guards
  readonly exits: readonly GuardedTask[]
  readonly faults: readonly Error[]
  /** Launches with a shell; throws if the launch is refused. */
  sh(taskId: string, script: string, more?: Partial<LaunchSpec>): Promise<void>
  exitOf(taskId: string): Promise<GuardedTask>
  output(taskId: string, stream?: 'stdout' | 'stderr'): Promise<string>
}

/** With a lease that is longer than the test. */
export async function guardWorld(options: Partial<GuardsOptions> = {}): Promise<GuardWorld> {
  const folder = options.folder ?? newGuardFolder()
  const exits: GuardedTask[] = []
  const faults: Error[] = []
  const guards = await openGuards({
    folder,
    program: await guardProgram(),
    isIsolated: true,
    endedOutputs: { maxTasks: 100, maxBytes: 1 << 20 },
    onFault: (fault) => faults.push(fault),
    ...options,
  })
  opened.add(guards)
  guards.onExit((task) => exits.push(task))
  guards.lease(bootTime() + LONG_LEASE_MS, LONG_LEASE_MS)
  const output = async (taskId: string, stream: 'stdout' | 'stderr' = 'stdout'): Promise<string> =>
    (await guards.readOutput(taskId, 1, stream, 0, 1 << 20))?.data.toString() ?? ''
  return {
    folder,
    guards,
    exits,
    faults,
    output,
    sh: async (taskId, script, more) => {
      const { error } = await guards.launch(shellSpec(taskId, script, more))
      if (error !== null) throw new Error(error)
    },
    exitOf: (taskId) => until(`end of ${taskId}`, () => exits.find((task) => task.taskId === taskId)),
  }
}

export function shellSpec(taskId: string, script: string, more: Partial<LaunchSpec> = {}): LaunchSpec {
  return {
    taskId,
    attempt: 1,
    record: { note: taskId },
    command: ['/bin/sh', '-c', script],
    env: { PATH: '/usr/local/bin:/usr/bin:/bin' },
    workingDirectory: '/',
    user: null,
    isLeased: false,
    maxOutputBytes: 1 << 16,
    ...more,
  }
}

export function attemptFolder(folder: string, taskId: string): string {
  return `${folder}/guards/${taskId}.1`
}

/** Pid of `guard`, `keeper` or `command`, as recorded before the command ran. */
export function pidOf(attempt: string, who: string): number {
  const line = new RegExp(`^${who} (\\d+) `, 'm').exec(readFileSync(`${attempt}/started`, 'utf8'))
  if (line === null) throw new Error(`${attempt}/started names no ${who}`)
  return Number(line[1])
}

export function isGone(pid: number): boolean {
  return !isRunnable(pid)
}

/** Living processes with the mark of that attempt. */
export function membersOf(attempt: string): number[] {
  const { mark } = JSON.parse(readFileSync(`${attempt}/task.json`, 'utf8')) as { mark: string }
  return processesWith(`HEADROOM_ATTEMPT=${mark}`).filter((pid) => !isGone(pid))
}

export interface GuardServer {
  readonly child: ChildProcess
  readonly exits: readonly GuardedTask[]
  ask(call: GuardServerCall): Promise<unknown>
}

/** Guards opened by another process; `uid`: as that user; `engineSocket`: it runs containers there. */
export async function startGuardServer(
  folder: string,
  isIsolated: boolean,
  uid?: number,
  engineSocket = '',
): Promise<GuardServer> {
  const program = await guardProgram()
  const child = fork(
    join(import.meta.dirname, 'guard-server.ts'),
    [folder, program, isIsolated ? 'isolated' : 'plain', engineSocket],
    {
      execArgv: [],
      env: { ...process.env, ...UNMEASURED },
      ...(uid === undefined ? {} : { uid, gid: uid }),
    },
  )
  children.add(child)
  const exits: GuardedTask[] = []
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>()
  let last = 0
  await new Promise<void>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`guard server ended with ${code}`)))
    child.on(
      'message',
      (message: { ready?: true; exited?: GuardedTask; id?: number; value?: unknown; error?: string }) => {
        if (message.ready) resolve()
        if (message.exited !== undefined) exits.push(message.exited)
        if (message.id === undefined) return
        if (message.error === undefined) waiting.get(message.id)?.resolve(message.value)
        else waiting.get(message.id)?.reject(new Error(message.error))
      },
    )
  })
  const ask = (call: GuardServerCall): Promise<unknown> =>
    new Promise((resolve, reject) => {
      waiting.set(++last, { resolve, reject })
      child.send({ ...call, id: last })
    })
  return { child, exits, ask }
}

function attemptFolders(folder: string): string[] {
  const parent = `${folder}/guards`
  return existsSync(`${parent}/.`) ? readdirSync(parent).map((name) => `${parent}/${name}`) : []
}

async function killAll(attempt: string): Promise<void> {
  if (!existsSync(`${attempt}/started`) || existsSync(`${attempt}/exit`)) return
  const pids = ['guard', 'keeper'].map((who) => pidOf(attempt, who))
  for (const pid of pids) if (`${readCommand(pid)}`.includes(attempt)) killIfThere(pid)
  await until(`${attempt} is gone`, () => {
    const left = membersOf(attempt)
    for (const pid of left) killIfThere(pid)
    return left.length === 0
  })
  removeCgroup((await readStarted(attempt))?.cgroup ?? null)
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

function readCommand(pid: number): string {
  return existsSync(`/proc/${pid}/cmdline`) ? readFileSync(`/proc/${pid}/cmdline`, 'latin1') : ''
}
