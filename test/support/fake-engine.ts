/** A container engine on a Unix socket that records what it is asked and runs nothing. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EngineContainers } from '../../gpu-server/container/engine-containers.ts'

export interface EngineCall {
  readonly method: string
  /** Without its query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly body: unknown
  /** Of a pull; null: none. */
  readonly login: string | null
}

export interface EngineAnswer {
  readonly status: number
  readonly body?: unknown
  /** Sent as it is, instead of a body. */
  readonly text?: string
}

type Answer = EngineAnswer | 'never' | 'drop' | null

/** Containers of a server on that engine; images are not pulled. */
export function fakeContainers(socketPath: string, stateFolder: string): EngineContainers {
  return new EngineContainers({
    engine: { kind: 'docker', version: '28', socketPath, isRootless: false, canLimit: true },
    stateFolder,
    pull: 'never',
    onNote: () => {},
  })
}

export const ENGINE_INFO = {
  SecurityOptions: ['name=seccomp,profile=default'],
  MemoryLimit: true,
  CpuCfsQuota: true,
  PidsLimit: true,
}
export const IMAGE_ID = `sha256:${'a1'.repeat(32)}`

export class FakeEngine {
  readonly folder = mkdtempSync(join(tmpdir(), 'headroom-engine-'))
  readonly socketPath = join(this.folder, 'engine.sock')
  readonly calls: EngineCall[] = []
  /** Takes precedence over the usual answers; null: the usual one. `never`: no answer. `drop`: closed. */
  answer: (call: EngineCall) => Answer | Promise<Answer> = () => null
  images = new Set(['team/train:1'])
  readonly containers = new Map<string, unknown>()
  /** What they were made of. */
  readonly networks = new Map<string, Readonly<Record<string, unknown>>>()
  #server: Server | null = null

  start(): Promise<this> {
    this.#server = createServer((request, response) => void this.#serve(request, response))
    return new Promise((resolve) => this.#server?.listen(this.socketPath, () => resolve(this)))
  }

  async end(): Promise<void> {
    this.#server?.closeAllConnections()
    await new Promise((resolve) => this.#server?.close(resolve))
    rmSync(this.folder, { recursive: true, force: true })
  }

  callsOf(method: string, path: RegExp): readonly EngineCall[] {
    return this.calls.filter((call) => call.method === method && path.test(call.path))
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = ''
    for await (const part of request) text += String(part)
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://engine')
    const call = {
      method: request.method ?? '',
      path: decodeURIComponent(pathname),
      query: searchParams,
      body: text === '' ? null : (JSON.parse(text) as unknown),
      login: request.headers['x-registry-auth']?.toString() ?? null,
    }
    this.calls.push(call)
    const answer = (await this.answer(call)) ?? this.#usual(call)
    if (answer === 'never') return
    if (answer === 'drop') return void request.socket.destroy()
    response.writeHead(answer.status, { 'Content-Type': 'application/json' })
    response.end(answer.text ?? (answer.body === undefined ? '' : JSON.stringify(answer.body)))
  }

  #usual({ method, path, query, body }: EngineCall): EngineAnswer {
    if (path === '/version')
      return { status: 200, body: { Version: '28.0.1', Components: [{ Name: 'Engine' }] } }
    if (path === '/info') return { status: 200, body: ENGINE_INFO }
    const image = /^\/images\/(.+)\/json$/.exec(path)?.[1]
    if (image !== undefined)
      return this.images.has(image)
        ? { status: 200, body: { Id: IMAGE_ID, Config: { WorkingDir: '/app' } } }
        : { status: 404, body: { message: `No such image: ${image}` } }
    if (path === '/images/create') {
      this.images.add(`${query.get('fromImage')}:${query.get('tag')}`)
      return { status: 200, text: '{"status":"Pulling"}\n{"status":"Downloaded"}\n' }
    }
    if (path === '/containers/json')
      return { status: 200, body: [...this.containers.keys()].map((name) => ({ Names: [`/${name}`] })) }
    if (path.endsWith('/containers/create')) {
      this.containers.set(query.get('name') ?? String((body as { name?: unknown }).name), body)
      return { status: 201, body: { Id: 'c1' } }
    }
    const network = /\/networks\/(.+)$/.exec(path)?.[1]
    if (network !== undefined) return this.#networkAnswer(method, network, body)
    const [, name = ''] = /^\/containers\/([^/]+)/.exec(path) ?? []
    if (method === 'DELETE')
      return this.containers.delete(name)
        ? { status: 204 }
        : { status: 404, body: { message: `No such container: ${name}` } }
    return path.endsWith('/start') ? { status: 204 } : { status: 400, body: { message: 'unknown request' } }
  }

  #networkAnswer(method: string, name: string, body: unknown): EngineAnswer {
    const made = (body ?? {}) as Readonly<Record<string, unknown>>
    if (name === 'create') {
      this.networks.set(String(made['Name'] ?? made['name']), made)
      return { status: 201, body: {} }
    }
    if (name === 'json')
      return { status: 200, body: [...this.networks.keys()].map((each) => ({ name: each })) }
    const found = this.networks.get(name)
    if (found === undefined) return { status: 404, body: { message: `network ${name} not found` } }
    if (method === 'DELETE') this.networks.delete(name)
    return { status: 200, body: method === 'DELETE' ? [] : found }
  }
}
