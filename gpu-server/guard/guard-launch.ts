import { spawn } from 'node:child_process'
import type { StartRefused } from '../../protocol/message-fields.ts'
import type { LaunchAnswer, LaunchSpec } from './guards.ts'
import {
  BAD_COMMAND,
  GUARD_FAILED,
  LEASE_OVER,
  NO_CONTAINER,
  NO_LIMITS,
  refusalAtStep,
  refusalInCwd,
  refusalInContainer,
  refusalOfFault,
} from './launch-refusal.ts'
import { errorText } from '../../protocol/error-text.ts'

const ANSWER_LIMIT_MS = 30_000
const ANSWER_BYTES = 1024
/** The guard waits for the init of its container (container.c). */
const WAITS_FOR_INIT = 'init\n'

/** Place and arguments of the start of a guard. */
export interface GuardStart {
  readonly program: string
  readonly folder: string
  readonly leasePath: string
  readonly cgroup: string | null
  readonly isIsolated: boolean
  readonly mark: string
  readonly container: ContainerLaunch | null
  /** Cgroups whose limits apply to the task. */
  readonly limitCgroups: readonly string[]
}

export interface ContainerLaunch {
  /** Working directory of the image. */
  readonly workingDirectory: string
  /** Starts the container, whose init connects to the waiting guard. */
  readonly start: () => Promise<LaunchAnswer>
}

/** Starts a guard with its command; resolves with an error text when nothing of either is left. */
export function startGuard(start: GuardStart, spec: LaunchSpec, isLeased: boolean): Promise<LaunchAnswer> {
  return new Promise((resolve) => {
    const child = spawn(start.program, [start.folder, start.leasePath], {
      detached: true,
      env: {},
      cwd: '/',
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    let answer = ''
    let failed: LaunchAnswer | null = null
    let isSettled = false
    const endLate = (): NodeJS.Timeout => setTimeout(() => child.kill('SIGKILL'), ANSWER_LIMIT_MS)
    let timer = endLate()
    const settle = (launched: LaunchAnswer) => {
      isSettled = true
      clearTimeout(timer)
      child.unref()
      resolve(launched)
    }
    const startContainer = async (container: ContainerLaunch): Promise<void> => {
      clearTimeout(timer)
      const started = await container.start()
      if (isSettled) return
      timer = endLate()
      if (started.error === null) return
      failed = started
      child.kill('SIGKILL')
    }
    child.once('error', (error) =>
      settle({ error: `guard ${start.program}: ${errorText(error)}`, refused: refusalOfFault(error) }),
    )
    child.stdin.on('error', () => undefined) // a refusal may come before it has read everything
    child.stdin.end(encodeSpec(start, spec, isLeased))
    child.stdout.setEncoding('utf8')
    child.stdout.on('data', (text: string) => {
      const waitsForInit = start.container !== null && answer + text === WAITS_FOR_INIT
      answer = waitsForInit ? '' : (answer + text).slice(0, ANSWER_BYTES)
      if (waitsForInit) void startContainer(start.container)
    })
    child.stdout.once('close', () =>
      settle(failed ?? answerIn(answer, start.container !== null, spec.cwd !== undefined)),
    )
  })
}

/**
 * Parses `ok PID`, `refused STEP ERRNO text`, or `KIND text` of task, lease, container, limits and error, as
 * guard.c writes it.
 */
function answerIn(answer: string, isContained: boolean, hasCwd: boolean): LaunchAnswer {
  if (/^ok \d+\n$/.test(answer)) return { error: null }
  const [, step, errno, why] = /^refused (\d+) (\d+) (.*)\n$/.exec(answer) ?? []
  if (why !== undefined) {
    const refused = refusalAtStep(Number(step), Number(errno))
    if (isContained) return { error: why, refused: refusalInContainer(refused) }
    return { error: why, refused: hasCwd ? refusalInCwd(refused) : refused }
  }
  const [, kind, words] = /^(task|lease|container|limits|error) (.*)\n$/.exec(answer) ?? []
  if (words === undefined && isContained) return CONTAINER_SILENT
  if (words === undefined) {
    return {
      error: `guard: it died, or did not start the command within ${ANSWER_LIMIT_MS / 1000} s`,
      refused: GUARD_FAILED,
    }
  }
  return { error: words, refused: REFUSALS[kind ?? ''] ?? GUARD_FAILED }
}

const REFUSALS: Readonly<Record<string, StartRefused>> = {
  task: BAD_COMMAND,
  lease: LEASE_OVER,
  container: NO_CONTAINER,
  limits: NO_LIMITS,
}
const CONTAINER_SILENT: LaunchAnswer = {
  error: `container: it did not start the command within ${ANSWER_LIMIT_MS / 1000} s`,
  refused: NO_CONTAINER,
}

/** Encodes the fields of spec.c, each terminated by NUL. */
function encodeSpec(start: GuardStart, spec: LaunchSpec, isLeased: boolean): string {
  const env = Object.entries({ ...spec.env, HEADROOM_ATTEMPT: start.mark }).map(
    ([name, value]) => `${name}=${value}`,
  )
  const fields = [
    encodeURIComponent(spec.taskId),
    spec.attempt,
    spec.user?.uid ?? -1,
    spec.user?.gid ?? -1,
    spec.user?.ownGroup ?? -1,
    isLeased ? 1 : 0,
    start.isIsolated ? 1 : 0,
    start.container === null ? 0 : 1,
    spec.maxOutputBytes,
    start.cgroup ?? '',
    (spec.limits?.memoryMib ?? null) === null ? 0 : 1,
    start.limitCgroups.length,
    ...start.limitCgroups,
    spec.cwd ?? start.container?.workingDirectory ?? spec.workingDirectory,
    spec.command.length,
    ...spec.command,
    env.length,
    ...env,
  ]
  return fields.map((field) => `${field}\0`).join('')
}

/** Returns why a command cannot be passed to a guard, or null: a NUL would end a string early. */
export function whyNotLaunchable(spec: LaunchSpec): string | null {
  if (spec.command.length === 0 || spec.command[0] === '') return 'command: must not be empty'
  if (spec.command.some((part) => part.includes('\0'))) return 'command: must not contain a NUL character'
  const bad = Object.entries(spec.env).find(
    ([name, value]) => name === '' || /[=\0]/.test(name) || value.includes('\0'),
  )
  if (bad !== undefined)
    return `environment variable ${JSON.stringify(bad[0])}: must be a name and a value without NUL`
  const folders = [spec.workingDirectory, spec.cwd ?? '/']
  if (folders.some((folder) => !folder.startsWith('/') || folder.includes('\0')))
    return 'working directory: must be an absolute path'
  if (!Number.isSafeInteger(spec.maxOutputBytes) || spec.maxOutputBytes < 0)
    return 'maxOutputBytes: must be a whole number of bytes'
  return null
}
