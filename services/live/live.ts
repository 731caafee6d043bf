/**
 * `headroom live`: one command that runs a broker, a controller and a few GPU servers as real processes on
 * this machine, to try a cluster. The parts are the commands of a real cluster, each in its own process; when
 * one of them ends, the others are stopped.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createConnection, createServer, type AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Mib } from '../../protocol/units.ts'
import { ENVIRONMENT } from '../settings/env-table.ts'
import { EXIT_FAILED, EXIT_OK, UsageError } from '../exit-codes.ts'
import { trialIdentity } from '../gpu-server/task-identity.ts'
import { readSettings } from '../settings/settings.ts'
import { untilSignal } from '../until-signal.ts'

export interface LiveOptions {
  readonly servers: number
  readonly gpus: number
  readonly vram: Mib
  /**
   * Milliseconds without use after which a task may be swapped out; applied to a controller whose
   * configuration was never changed.
   */
  readonly idle: number
  readonly overcommit: number
}

const START_TIMEOUT_MS = 30_000
/** `max_stop_grace_seconds` plus 15 s: the GPU servers end their tasks. */
const STOP_TIMEOUT_MS = 315_000
const POLL_INTERVAL_MS = 50

interface Part {
  readonly name: string
  readonly child: ChildProcess
  readonly ended: Promise<string>
}

export async function live(options: LiveOptions): Promise<number> {
  const settings = readSettings(process.env)
  const folder = resolve(settings.dataDir, 'live')
  const parts: Part[] = []
  const isAsked = untilSignal().then(() => null)
  try {
    const natsUrl = settings.natsUrls[0] ?? (await startBroker(parts))
    const url = await startController(parts, folder, natsUrl, options)
    await applySettings(url, options)
    const path = `${writeCommandScript(folder)}:${process.env['PATH'] ?? ''}`
    for (let i = 1; i <= options.servers; i++)
      startServer(parts, { folder, natsUrl, path, index: i }, options)
    await until(
      `${options.servers} servers are up`,
      parts,
      async () => (await upNodes(url)) >= options.servers,
    )
    process.stdout.write(welcomeText(url, options))
    const ended = await Promise.race([isAsked, ...parts.map((part) => part.ended)])
    if (ended !== null) process.stderr.write(`${ended}; stopping the others\n`)
    return ended === null ? EXIT_OK : EXIT_FAILED
  } finally {
    await stopAll(parts)
  }
}

async function startBroker(parts: Part[]): Promise<string> {
  if (spawnSync('nats-server', ['--version']).error !== undefined) {
    throw new UsageError(
      'nats-server is not on the PATH: install it (Debian, Ubuntu: apt-get install nats-server), or set ' +
        `${ENVIRONMENT.natsUrls.name} to a running broker`,
    )
  }
  const port = await freePort()
  start(parts, 'nats-server', ['nats-server', '-a', '127.0.0.1', '-p', String(port)], {})
  await until('the broker is up', parts, () => listens(port))
  return `nats://127.0.0.1:${port}`
}

async function startController(
  parts: Part[],
  folder: string,
  natsUrl: string,
  options: LiveOptions,
): Promise<string> {
  const controller = start(parts, 'the controller', headroom('serve'), {
    [ENVIRONMENT.natsUrls.name]: natsUrl,
    [ENVIRONMENT.dataDir.name]: join(folder, 'controller'),
    // It listens on this host only.
    [ENVIRONMENT.httpHost.name]: '127.0.0.1',
    [ENVIRONMENT.adminTokenFile.name]: '',
    [ENVIRONMENT.defaultOvercommitPercent.name]: String(options.overcommit),
    [ENVIRONMENT.logLevel.name]: process.env[ENVIRONMENT.logLevel.name] ?? 'warn',
  })
  let printed = ''
  controller.child.stdout?.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  await until('the controller is up', parts, () => /http:\S+/.test(printed))
  const url = /http:\/\/[^\s/]+/.exec(printed)?.[0] ?? ''
  await until('the controller has reached the broker', parts, async () => (await fetch(`${url}/readyz`)).ok)
  return url
}

/** Sets a short idle period, so that swaps can be watched; keeps a configuration that was changed before. */
async function applySettings(url: string, { idle, overcommit }: LiveOptions): Promise<void> {
  const { source } = (await (await fetch(`${url}/api/v1/config`)).json()) as { readonly source: string }
  if (source === 'persisted') return
  const body = JSON.stringify({
    idle_swap_out_seconds: Math.ceil(idle / 1000),
    default_vram_overcommit_percent: overcommit,
  })
  const answer = await fetch(`${url}/api/v1/config`, {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json' },
    body,
  })
  if (!answer.ok) throw new Error(`PUT /config: ${await answer.text()}`)
}

interface ServerPlace {
  readonly folder: string
  readonly natsUrl: string
  /** PATH of its tasks' commands. */
  readonly path: string
  /** From 1. */
  readonly index: number
}

function startServer(
  parts: Part[],
  { folder, natsUrl, path, index }: ServerPlace,
  options: LiveOptions,
): void {
  const name = `local-${index}`
  const state = join(folder, name)
  mkdirSync(state, { recursive: true })
  const inventory = join(folder, `${name}.inventory.yaml`)
  const gpu = { model: 'declared', vram_mib: options.vram, swap: 'pinned-gen4' }
  writeFileSync(
    inventory,
    `${JSON.stringify({ gpus: Array.from({ length: options.gpus }, () => gpu) }, null, 2)}\n`,
  )
  const command = headroom(
    'gpu-server',
    '--device',
    'process',
    '--inventory',
    inventory,
    '--allow-exec',
    '--stop-tasks',
    ...trialIdentity(folder, index),
  )
  start(parts, `server ${name}`, command, {
    [ENVIRONMENT.natsUrls.name]: natsUrl,
    NODE_NAME: name,
    NODE_ADDRESS: '127.0.0.1',
    NODE_STATE_DIR: state,
    PATH: path,
    [ENVIRONMENT.logLevel.name]: process.env[ENVIRONMENT.logLevel.name] ?? 'warn',
  })
}

/** Makes this `headroom` available to tasks by name, even if it is not installed. Returns its folder. */
function writeCommandScript(folder: string): string {
  const bin = join(folder, 'bin')
  mkdirSync(bin, { recursive: true })
  const words = [process.execPath, process.argv[1] ?? ''].map((word) => `'${word.replaceAll("'", `'\\''`)}'`)
  writeFileSync(join(bin, 'headroom'), `#!/bin/sh\nexec ${words.join(' ')} "$@"\n`, { mode: 0o755 })
  return bin
}

function welcomeText(url: string, { servers, gpus, vram, idle, overcommit }: LiveOptions): string {
  const half = Math.floor((vram * 3) / 5)
  return `
${servers} servers with ${gpus} declared GPU(s) of ${vram} MiB each, ${overcommit}% overcommit.
Idle tasks may be swapped out after ${Math.ceil(idle / 1000)} s. Controller: ${url}
In another terminal:
  export HEADROOM_URL=${url}
  headroom status
  headroom run --vram ${half}Mi -- headroom work busy=5s idle=10m
(Start more than fit, then run: headroom task list)
Press Ctrl-C to stop everything, including the tasks.
`
}

function start(
  parts: Part[],
  name: string,
  command: readonly string[],
  env: Readonly<Record<string, string>>,
): Part {
  const [file = '', ...args] = command
  // In its own process group: Ctrl-C reaches only this process, which then ends the parts in order.
  const child = spawn(file, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  let lastLine = ''
  child.stderr.on('data', (chunk: Buffer) => {
    const text = chunk.toString()
    lastLine = text.trimEnd().split('\n').at(-1) ?? lastLine
    if (name !== 'nats-server') process.stderr.write(text)
  })
  const ended = new Promise<string>((done) => {
    child.once('error', (error) => done(`${name} did not start: ${error.message}`))
    child.once('exit', (code, signal) =>
      done(`${name} has ended (${signal ?? code})${lastLine === '' ? '' : `: ${lastLine}`}`),
    )
  })
  const part = { name, child, ended }
  parts.push(part)
  return part
}

/** In reverse order: servers while they can still report, the broker last. */
async function stopAll(parts: readonly Part[]): Promise<void> {
  const servers = parts.filter(({ name }) => name.startsWith('server '))
  await Promise.all(servers.map(stopPart))
  for (const part of parts.filter((each) => !servers.includes(each)).toReversed()) await stopPart(part)
}

async function stopPart({ child, ended }: Part): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
  await ended
  clearTimeout(timer)
}

async function until(
  what: string,
  parts: readonly Part[],
  look: () => Promise<boolean> | boolean,
): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS
  let ended: string | null = null
  for (const part of parts) void part.ended.then((how) => (ended ??= how))
  while (!(await look())) {
    if (ended !== null) throw new Error(ended)
    if (performance.now() > deadline) throw new Error(`timed out after ${START_TIMEOUT_MS / 1000} s: ${what}`)
    await wait(POLL_INTERVAL_MS)
  }
}

async function upNodes(url: string): Promise<number> {
  const { items } = (await (await fetch(`${url}/api/v1/nodes`)).json()) as {
    readonly items: readonly { readonly status: string }[]
  }
  return items.filter(({ status }) => status === 'up').length
}

function headroom(...args: readonly string[]): readonly string[] {
  return [process.execPath, ...process.execArgv, process.argv[1] ?? '', ...args]
}

function freePort(): Promise<number> {
  return new Promise((done, fail) => {
    const server = createServer()
    server.once('error', fail)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => done(port))
    })
  })
}

function listens(port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = createConnection(port, '127.0.0.1')
    const settle = (isUp: boolean): void => {
      socket.destroy()
      done(isUp)
    }
    socket.once('connect', () => settle(true))
    socket.once('error', () => settle(false))
  })
}
