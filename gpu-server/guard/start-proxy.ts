/** Starts the forwarding proxy of one attempt and reads its counts (proxy.c and proxy-control.c). */
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import type { DurationMs } from '../../protocol/units.ts'
import { errorText } from '../../protocol/error-text.ts'

export interface ProxyTarget {
  /** The port on which the task listens. */
  readonly target: number
  /** `engine`: HTTP of an inference engine, whose administrative paths are refused (proxy-http.c). */
  readonly protocol: 'tcp' | 'http' | 'engine'
}

export interface ProxyStart {
  /** The guard program. */
  readonly program: string
  /** Folder of the guard of the attempt. */
  readonly folder: string
  /** An IP address of this host. */
  readonly address: string
  readonly ports: { readonly from: number; readonly to: number }
  /** The first port of the range that is tried. */
  readonly next: number
  readonly targets: readonly ProxyTarget[]
  /** The task is out: requests are held from the beginning. */
  readonly isOut: boolean
  readonly holdMs: DurationMs
  readonly maxHeld: number
}

/** A port of the proxy, and where it leads. */
export interface ProxiedPort extends ProxyTarget {
  readonly port: number
}

/**
 * Counts since the proxy started. `refused`: above a limit; `expired`: held for too long; `denied`: no
 * socket of the task listened; `forbidden`: requests that may not pass to an engine.
 */
export interface ProxyCounts {
  readonly isOut: boolean
  /** A request was held since the task is out. */
  readonly isWanted: boolean
  readonly held: number
  readonly open: number
  readonly accepted: number
  readonly refused: number
  readonly expired: number
  readonly denied: number
  readonly forbidden: number
  readonly address: string
  readonly ports: readonly ProxiedPort[]
}

const ANSWER_LIMIT_MS: DurationMs = 10_000

/** Resolves with the ports in the order of the targets, or with why there is no proxy. */
export async function startProxy(start: ProxyStart): Promise<readonly number[] | { readonly error: string }> {
  const { folder, address, ports, next, holdMs, maxHeld, isOut, targets } = start
  const child = spawn(
    start.program,
    [
      ...['--proxy', folder, address],
      ...[ports.from, ports.to, next, holdMs, maxHeld].map(String),
      isOut ? 'hold' : 'pass',
      ...targets.map(({ target, protocol }) => `${target}/${protocol}`),
    ],
    { detached: true, env: {}, cwd: '/', stdio: ['ignore', 'pipe', 'ignore'] },
  )
  const timer = setTimeout(() => child.kill('SIGKILL'), ANSWER_LIMIT_MS)
  const failed = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(`error ${errorText(error)}\n`))
  })
  const answer = await Promise.race([text(child.stdout), failed])
  clearTimeout(timer)
  child.unref()
  const [, numbers] = /^ok((?: \d+)+)\n$/.exec(answer) ?? []
  if (numbers !== undefined) return numbers.trim().split(' ').map(Number)
  return { error: /^error (.*)\n$/.exec(answer)?.[1] ?? 'it does not answer' }
}

/** Parses the answer to `stat`; null: another version wrote it. */
export function proxyCountsIn(answer: string): ProxyCounts | null {
  const fields = new Map(answer.split(' ').map((word) => word.split('=', 2) as [string, string | undefined]))
  const count = (name: string): number => Number(fields.get(name))
  const address = fields.get('address')
  const ports = (fields.get('ports') ?? '').split(',').map(portIn)
  const isWanted = fields.get('wanted') === '1'
  const counts = {
    isOut: fields.get('state') === 'hold',
    held: count('held'),
    open: count('open'),
    accepted: count('accepted'),
    refused: count('refused'),
    expired: count('expired'),
    denied: count('denied'),
    forbidden: count('forbidden'),
  }
  const isWhole = Object.values(counts).every((value) => !Number.isNaN(value))
  if (!isWhole || address === undefined || !ports.every((port) => port !== null)) return null
  return { ...counts, isWanted, address, ports }
}

function portIn(word: string): ProxiedPort | null {
  const [, port, target, protocol] = /^(\d+):(\d+)\/(tcp|http|engine)$/.exec(word) ?? []
  if (protocol === undefined) return null
  return { port: Number(port), target: Number(target), protocol: protocol as ProxyTarget['protocol'] }
}
