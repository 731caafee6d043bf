/** The process of the guard program through which a channel into a task runs. */
import { spawn, type ChildProcess } from 'node:child_process'
import type { ChannelTarget } from '../../protocol/channel-messages.ts'
import type { Guards } from '../guard/guards.ts'

export interface ChannelHost {
  /** The guard program. */
  readonly program: string
  readonly guards: Pick<Guards, 'folderOf' | 'processIds'>
}

export type ChannelProcess =
  | { readonly child: ChildProcess; /** Its first frame; null: none. */ readonly request: Uint8Array | null }
  | { readonly refused: string }

type Started =
  { readonly args: readonly string[]; readonly request: Uint8Array | null } | { readonly refused: string }

export function startChannelProcess(
  host: ChannelHost,
  taskId: string,
  attempt: number,
  target: ChannelTarget,
): ChannelProcess {
  const how = argumentsFor(host.guards, taskId, attempt, target)
  if ('refused' in how) return how
  const child = spawn(host.program, how.args, { env: {}, cwd: '/', stdio: ['pipe', 'pipe', 'ignore'] })
  return { child, request: how.request }
}

function argumentsFor(
  guards: ChannelHost['guards'],
  taskId: string,
  attempt: number,
  target: ChannelTarget,
): Started {
  if (target.kind === 'exec') {
    const folder = guards.folderOf(taskId, attempt)
    if (folder === null) return { refused: 'unknown_attempt' }
    return { args: ['--exec', folder], request: requestFor(target) }
  }
  const pids = guards.processIds(taskId, attempt)
  if (pids.length === 0) return { refused: 'unknown_attempt' }
  return { args: ['--forward', String(target.port), pids.join(',')], request: null }
}

/** As added_request_read in guard/spec.c reads it. */
function requestFor({ command, terminal }: Extract<ChannelTarget, { kind: 'exec' }>): Uint8Array {
  const { rows = 0, columns = 0, kind = '' } = terminal ?? {}
  const fields = [terminal === null ? 0 : 1, rows, columns, kind, command.length, ...command]
  return Buffer.from(fields.map((field) => `${field}\0`).join(''))
}
