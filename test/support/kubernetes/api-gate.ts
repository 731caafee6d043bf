/** An address of the API server for one client, where a request can be held until the test lets it pass. */
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Agent, createServer, request, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEachFile } from '../endings.ts'
import type { ControlPlane } from './control-plane.ts'

export interface Asked {
  readonly method: string
  readonly path: string
  readonly body: string
}

export interface HeldRequest extends Asked {
  /** Lets it pass. Resolves with the code of the answer. */
  pass(): Promise<number>
}

interface Trap {
  readonly isMeant: (asked: Asked) => boolean
  readonly caught: (held: HeldRequest) => void
}

const open = new Set<ApiGate>()
afterEachFile(() => open.forEach((gate) => gate.close()))

export class ApiGate {
  readonly #plane: ControlPlane
  readonly #server: Server
  readonly #upstream: Agent
  #trap: Trap | null = null

  private constructor(plane: ControlPlane) {
    this.#plane = plane
    const read = (name: string): string => readFileSync(join(plane.folder, name), 'utf8')
    this.#upstream = new Agent({ keepAlive: true, ca: read('ca.pem') })
    this.#server = createServer({ cert: read('server.pem'), key: read('server.key') }, (asked, answer) => {
      // A client that is gone, or an API server that is away.
      this.#serve(asked, answer).catch(() => answer.destroy())
    })
  }

  static async start(plane: ControlPlane): Promise<ApiGate> {
    const gate = new ApiGate(plane)
    open.add(gate)
    // The API server keeps idle connections for longer than its clients.
    gate.#server.keepAliveTimeout = 0
    await new Promise<void>((resolve) => gate.#server.listen(0, '127.0.0.1', resolve))
    return gate
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Holds the next request that is meant, once. Resolves when it has come. */
  next(isMeant: (asked: Asked) => boolean): Promise<HeldRequest> {
    return new Promise((resolve) => {
      this.#trap = { isMeant, caught: resolve }
    })
  }

  close(): void {
    open.delete(this)
    this.#server.close()
    this.#server.closeAllConnections()
    this.#upstream.destroy()
  }

  async #serve(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const { method = 'GET', url: path = '/' } = asked
    const body = Buffer.concat(await asked.toArray()).toString()
    const trap = this.#trap
    if (trap !== null && trap.isMeant({ method, path, body })) {
      this.#trap = null
      const passed = Promise.withResolvers<void>()
      // It is on its way to the API server, even if its client has given up meanwhile.
      const code = passed.promise.then(() => this.#forward(asked, body, answer).code)
      trap.caught({
        ...{ method, path, body },
        pass: () => {
          passed.resolve()
          return code
        },
      })
      await code
    } else {
      const { code, cancel } = this.#forward(asked, body, answer)
      answer.on('close', cancel)
      await code
    }
  }

  /** `code` resolves once the answer has begun. */
  #forward(
    { method, url = '/', headers }: IncomingMessage,
    body: string,
    answer: ServerResponse,
  ): { readonly code: Promise<number>; readonly cancel: () => void } {
    const { promise: code, resolve, reject } = Promise.withResolvers<number>()
    const how = { method, headers, agent: this.#upstream }
    const sent = request(new URL(url, this.#plane.server), how, (got) => {
      answer.writeHead(got.statusCode ?? 502, got.headers)
      // A watch is silent for long.
      answer.flushHeaders()
      got.pipe(answer)
      got.on('error', () => answer.destroy())
      resolve(got.statusCode ?? 502)
    })
    sent.on('error', reject)
    sent.end(body)
    return { code, cancel: () => sent.destroy() }
  }
}
