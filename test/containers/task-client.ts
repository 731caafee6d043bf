/** Tasks in containers of a live cluster. */
import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { headroom, until, type LiveCluster } from '../support/live-cluster.ts'
import { IMAGE } from './task-engine.ts'

export interface Task {
  readonly id: string
  readonly state: string
  readonly residency: string
  readonly attempt: number
  readonly exit_code: number | null
  readonly end_code: string | null
  readonly end_reason: string | null
  readonly image_digest: string | null
  readonly wait: { readonly reason: string } | null
  readonly start_refusals: readonly {
    readonly cause: string
    readonly code: string
    readonly detail: string
  }[]
}

export async function submit(
  live: LiveCluster,
  name: string,
  command: readonly string[],
  more: object = {},
): Promise<string> {
  const task = { name, vram_mib: 1_024, image: IMAGE, command, ...more }
  return (await live.send<Task>('POST', '/tasks', task)).id
}

export function taskOf(live: LiveCluster, id: string): Promise<Task> {
  return live.get<Task>(`/tasks/${id}`)
}

export async function reaches(
  live: LiveCluster,
  id: string,
  state: string,
  withinMs = 60_000,
): Promise<Task> {
  let seen: Task | null = null
  await until(
    `task ${id} is ${state}`,
    async () => (seen = await taskOf(live, id)).state === state,
    withinMs,
  ).catch((error: unknown) => {
    throw new Error(`${String(error)}: ${JSON.stringify(seen)}`)
  })
  return seen ?? assert.fail()
}

export async function cancel(live: LiveCluster, ...ids: readonly string[]): Promise<void> {
  for (const id of ids) await live.send('DELETE', `/tasks/${id}?now=true`)
  for (const id of ids) await reaches(live, id, 'cancelled')
}

export async function outputOf(live: LiveCluster, id: string): Promise<string> {
  const { data } = await live.get<{ readonly data: string }>(`/tasks/${id}/logs`)
  return Buffer.from(data, 'base64').toString()
}

/** Runs to its end; returns the output of a completed task. */
export async function outputOfRun(
  live: LiveCluster,
  name: string,
  script: string,
  more: object = {},
): Promise<string> {
  const id = await submit(live, name, ['sh', '-c', script], more)
  await reaches(live, id, 'completed')
  return outputOf(live, id)
}

export interface Client {
  readonly child: ChildProcess
  /** Stdout and stderr in order of arrival. */
  output(): string
  readonly ended: Promise<number | null>
}

/** Starts the command line against the controller of the cluster. */
export function startClient(live: LiveCluster, ...args: readonly string[]): Client {
  const [file = '', ...all] = headroom(...args)
  const child = spawn(file, all, {
    env: { ...process.env, HEADROOM_URL: live.url },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (text: Buffer) => (output += String(text)))
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  return { child, output: () => output, ended }
}

export function step(what: string): void {
  process.stdout.write(`${new Date().toISOString().slice(11, 19)} ${what}\n`)
}
