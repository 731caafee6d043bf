/** The API of the controller under test, as an administrator and as a submitter. */
import { setTimeout as wait } from 'node:timers/promises'

const URL = 'http://127.0.0.1:30080/api/v1'
const WITHIN_MS = 60_000
const LOOK_EVERY_MS = 200

interface Task {
  readonly id: string
  readonly state: string
}

export class ApiUser {
  readonly #token: string

  constructor(token: string) {
    this.#token = token
  }

  async call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await this.#fetch(method, path, body)
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as T
  }

  async statusOf(method: string, path: string): Promise<number> {
    return (await this.#fetch(method, path)).status
  }

  async submit(name: string, command: readonly string[]): Promise<string> {
    return (await this.call<Task>('POST', '/tasks', { name, vram_mib: 1_024, command })).id
  }

  /** Resolves once the task is in one of the states. */
  reaches(id: string, ...states: readonly string[]): Promise<void> {
    let state = 'unknown'
    return until(
      () => `task ${id} reaches ${states.join(' or ')}: it is ${state}`,
      async () => {
        state = (await this.call<Task>('GET', `/tasks/${id}`)).state
        return states.includes(state)
      },
    )
  }

  async outputOf(id: string): Promise<string> {
    const { data } = await this.call<{ readonly data: string }>('GET', `/tasks/${id}/logs`)
    return Buffer.from(data, 'base64').toString()
  }

  #fetch(method: string, path: string, body?: unknown): Promise<Response> {
    const headers = {
      Authorization: `Bearer ${this.#token}`,
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    }
    return fetch(`${URL}${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  }
}

export async function until(what: () => string, look: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + WITHIN_MS
  while (!(await look().catch(() => false))) {
    if (performance.now() > deadline) throw new Error(`not within ${WITHIN_MS / 1000} s: ${what()}`)
    await wait(LOOK_EVERY_MS)
  }
}
