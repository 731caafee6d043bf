/** Load on controllers that die, and the supervisor that starts them again. */
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import type { ControllerOn } from '../durability/controller-on.ts'

const CLIENTS = 4
/** How long a client waits for one of several controllers: less than the lease, and more than half of it. */
export const PATIENCE_MS = 1_500

/** Starts the controller again whenever it has ended. */
export class Supervisor {
  readonly #controller: ControllerOn
  readonly #root: string
  #isEnding = false
  #running: Promise<void> | null = null

  constructor(controller: ControllerOn, root: string) {
    this.#controller = controller
    this.#root = root
  }

  async begin(): Promise<void> {
    await this.#start()
    this.#running = this.#run()
  }

  #start(): Promise<void> {
    const isUp = () =>
      fetch(`${this.#root}/livez`).then(
        (answer) => answer.ok,
        () => false,
      )
    return this.#controller.member.start(isUp)
  }

  async #run(): Promise<void> {
    while (!this.#isEnding) {
      if (!this.#controller.member.isRunning) await this.#start().catch(() => undefined)
      await delay(20)
    }
  }

  async end(): Promise<void> {
    this.#isEnding = true
    await this.#controller.member.end()
    await this.#running
    await this.#controller.member.end()
  }
}

export interface LoadOptions {
  readonly headers?: Readonly<Record<string, string>>
  /** Of a submission, without its name. */
  readonly task?: (name: string) => object
  /** Number of submissions that are sent at the same time (default 4). */
  readonly clients?: number
  /** Of each client, between an answer and its next submission (default 0). */
  readonly pauseMs?: number
  /** How long a client waits for one of several controllers (default PATIENCE_MS). */
  readonly patienceMs?: number
}

/** Clients that submit one task after the other, and repeat each with its key until it is acknowledged. */
export class Load {
  readonly #urls: readonly string[]
  readonly #options: LoadOptions
  readonly #ids = new Map<string, string>()
  #isEnding = false
  #next = 0
  /** When the newest acknowledged submission was sent. */
  #lastSentAt = 0
  #clients: Promise<void>[] = []
  repeated = 0
  /** Answers other than 201. */
  refused = 0
  /** Requests without an answer within the time that a client waits. */
  timedOut = 0
  #acknowledgedAt = 0
  #longestGapMs = 0

  /** @param roots of the controllers; none is told which one leads */
  constructor(roots: readonly string[], options: LoadOptions = {}) {
    this.#urls = roots.map((root) => `${root}/api/v1/tasks`)
    this.#options = options
  }

  /** Number of submissions that are sent at the same time. */
  get clients(): number {
    return this.#clients.length
  }

  get acknowledged(): number {
    return this.#ids.size
  }

  /** Acknowledged tasks: name and ID. */
  get ids(): ReadonlyMap<string, string> {
    return this.#ids
  }

  /** Between acknowledgements, since the last call. */
  takeLongestGapMs(): number {
    const longest = this.#longestGapMs
    this.#longestGapMs = 0
    return longest
  }

  begin(): void {
    this.#clients = Array.from({ length: this.#options.clients ?? CLIENTS }, (_, client) =>
      this.#client(client),
    )
  }

  async end(): Promise<void> {
    this.#isEnding = true
    await Promise.all(this.#clients)
  }

  /** Of a submission that was sent after this call. */
  async nextAcknowledgement(): Promise<void> {
    const from = performance.now()
    while (this.#lastSentAt < from) await delay(2)
  }

  async #client(first: number): Promise<void> {
    let at = first
    while (!this.#isEnding) {
      const name = `task-${(this.#next += 1)}`
      for (let tries = 0; !this.#isEnding && !this.#ids.has(name); tries++) {
        if (tries === 1) this.repeated += 1
        const isDone = await this.#submit(name, this.#urls[at % this.#urls.length] ?? '')
        if (!isDone) at += 1
      }
      if (this.#options.pauseMs !== undefined) await delay(this.#options.pauseMs)
    }
  }

  /** @returns false: try the next address */
  async #submit(name: string, url: string): Promise<boolean> {
    const sentAt = performance.now()
    const { headers = {}, task = () => ({ vram_mib: 1_000 }), patienceMs = PATIENCE_MS } = this.#options
    const answer = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'idempotency-key': name },
      body: JSON.stringify({ name, ...task(name) }),
      signal: AbortSignal.timeout(this.#urls.length > 1 ? patienceMs : 10_000),
    })
      .then(async (response) => ({ status: response.status, text: await response.text() }))
      .catch((error: unknown) => {
        // Also between the headers and the end of the body.
        if ((error as Error).name === 'TimeoutError') this.timedOut += 1
        return null
      })
    if (answer?.status === 201) {
      this.#ids.set(name, (JSON.parse(answer.text) as { readonly id: string }).id)
      const now = performance.now()
      if (this.#acknowledgedAt > 0)
        this.#longestGapMs = Math.max(this.#longestGapMs, now - this.#acknowledgedAt)
      this.#acknowledgedAt = now
      this.#lastSentAt = Math.max(this.#lastSentAt, sentAt)
      return true
    }
    if (answer !== null && answer.status !== 503) throw new Error(`${answer.status} ${answer.text}`)
    if (answer !== null) this.refused += 1
    await delay(50)
    return false
  }

  /** Every acknowledged task exists once. */
  async check(): Promise<void> {
    const known = [...this.#ids]
    const found = new Map<string, string[]>()
    let at = 0
    for (let cursor: string | null = ''; cursor !== null;) {
      const query: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
      const url = this.#urls[at % this.#urls.length] ?? ''
      const { headers = {} } = this.#options
      const answer = await fetch(`${url}?limit=200${query}`, { headers }).catch(() => null)
      if (answer?.ok !== true) {
        at += 1
        await delay(50)
        continue
      }
      const page = (await answer.json()) as {
        readonly items: readonly { readonly id: string; readonly name: string }[]
        readonly next_cursor: string | null
      }
      for (const { id, name } of page.items) found.set(name, [...(found.get(name) ?? []), id])
      cursor = page.next_cursor
    }
    for (const [name, ids] of found) expect(ids, name).toHaveLength(1)
    for (const [name, id] of known) expect(found.get(name), name).toEqual([id])
  }
}
