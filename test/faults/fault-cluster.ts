/**
 * Shared by the fault tests: a cluster with process servers, four by default, tasks that record when they
 * ran, and counts from the environment.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { afterAll } from 'vitest'
import { LiveCluster, type Member } from '../support/live-cluster.ts'

export const SERVERS = 4
export const VRAM_MIB = 8_192
const INVENTORY = JSON.stringify({ gpus: [{ model: 'declared', vram_mib: VRAM_MIB, swap: 'pinned-gen4' }] })
const OPEN_TIMEOUT_MS = 30_000

/** Number of faults of a kind: small in `make test`, larger in `make test-faults`. */
export function count(variable: string, byDefault: number): number {
  const text = process.env[variable]
  return text === undefined || text === '' ? byDefault : Number(text)
}

export interface FaultCluster {
  readonly cluster: LiveCluster
  readonly servers: readonly Member[]
}

const open = new Set<LiveCluster>()
afterAll(async () => {
  for (const cluster of open) await cluster.end()
}, OPEN_TIMEOUT_MS)

/** Broker, controller and servers, with the default configuration except for these fields. */
export async function startFaultCluster(
  config: Readonly<Record<string, unknown>>,
  serverCount = SERVERS,
): Promise<FaultCluster> {
  const cluster = await LiveCluster.start()
  open.add(cluster)
  await cluster.send('PUT', '/config', { ...config })
  const names = Array.from({ length: serverCount }, (_, i) => `server-${i}`)
  const servers = await Promise.all(names.map((name) => cluster.startServer(name, INVENTORY)))
  return { cluster, servers }
}

export interface Task {
  readonly id: string
  readonly state: string
  readonly attempt: number
  readonly placement: { readonly node_name: string } | null
}

export function submit(cluster: LiveCluster, fields: Readonly<Record<string, unknown>>): Promise<Task> {
  return cluster.send<Task>('POST', '/tasks', { vram_mib: 256, ...fields })
}

export function task(cluster: LiveCluster, id: string): Promise<Task> {
  return cluster.get<Task>(`/tasks/${id}`)
}

/**
 * A command that appends one line with its name to the file, which tasks of other users also append to, and
 * ends.
 */
export function leavesMark(file: string, name: string): readonly string[] {
  return ['sh', '-c', 'umask 0; echo "$1" >> "$0"', file, name]
}

/**
 * A command that writes the time, in nanoseconds since 1970, twenty times a second, to its own file in the
 * folder of `file`, until it is killed.
 */
export function leavesTrail(file: string): readonly string[] {
  return [
    'sh',
    '-c',
    'f="$0.$(cat /proc/sys/kernel/random/uuid)"; while :; do date +%s%N >> "$f"; sleep 0.05; done',
    file,
  ]
}

/** First and last time at which each process was seen running, in nanoseconds. */
export function trails(
  folder: string,
  name: string,
): readonly { readonly from: bigint; readonly to: bigint }[] {
  if (!existsSync(folder)) return []
  const files = readdirSync(folder).filter((each) => each.startsWith(`${name}.`))
  return files
    .map((each) => readFileSync(`${folder}/${each}`, 'utf8').trim().split('\n').filter(Boolean).map(BigInt))
    .filter((times) => times.length > 0)
    .map((times) => ({ from: times[0] as bigint, to: times.at(-1) as bigint }))
    .sort((a, b) => (a.from < b.from ? -1 : 1))
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN
}
