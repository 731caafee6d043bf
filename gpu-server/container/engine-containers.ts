/** Containers of tasks on one engine: its images, their starts, and what is left of them. */
import { createHash } from 'node:crypto'
import type { Containers, ContainerStart, PreparedImage, Refused } from '../guard/containers.ts'
import { NO_CONTAINER, NO_RUNTIME } from '../guard/launch-refusal.ts'
import { containerRequest, ownerLabel } from './container-request.ts'
import { EngineApi, type EngineKind } from './engine-api.ts'
import { EngineFault } from './engine-socket.ts'

export const PULL_POLICIES = ['missing', 'always', 'never'] as const
export type PullPolicy = (typeof PULL_POLICIES)[number]

/** An engine that answered when the server started. */
export interface Engine {
  readonly kind: EngineKind
  readonly version: string
  readonly socketPath: string
  readonly isRootless: boolean
  /** Of memory, processors and processes of a container. */
  readonly canLimit: boolean
}

export interface EngineContainersOptions {
  readonly engine: Engine
  /** Of this server only; containers of other servers on the engine are left alone. */
  readonly stateFolder: string
  readonly pull: PullPolicy
  readonly onNote: (line: string) => void
}

const REMOVE_AGAIN_MS = 10_000
const OWNER_DIGITS = 16

export class EngineContainers implements Containers {
  readonly #options: EngineContainersOptions
  readonly #api: EngineApi
  readonly #owner: string
  #isNeeded: (name: string) => boolean = () => true
  #timer: NodeJS.Timeout | null = null
  #isClosed = false

  constructor(options: EngineContainersOptions) {
    this.#options = options
    this.#api = new EngineApi(options.engine.socketPath)
    this.#owner = createHash('sha256').update(options.stateFolder).digest('hex').slice(0, OWNER_DIGITS)
  }

  /** Of the engine. */
  get canLimit(): boolean {
    return this.#options.engine.canLimit
  }

  async prepare(image: string, signal: AbortSignal): Promise<PreparedImage | Refused> {
    try {
      const { pull } = this.#options
      const before = pull === 'always' ? null : await this.#api.image(image)
      if (before === null && pull === 'never')
        return imageMissing(`image ${image}: this host does not have it`)
      if (before === null) await this.#api.pull(image, {}, signal)
      const found = before ?? (await this.#api.image(image))
      if (found === null) return imageMissing(`image ${image}: the engine has pulled it and does not have it`)
      return { error: null, imageId: found.id, workingDirectory: found.workingDirectory }
    } catch (error) {
      return refusalOf(error, (why) => imageMissing(`image ${image}: ${why}`))
    }
  }

  async start(start: ContainerStart): Promise<{ readonly error: null } | Refused> {
    const { kind, isRootless } = this.#options.engine
    try {
      const request = containerRequest(start, { kind, isRootless, owner: this.#owner })
      await this.#api.create(start.name, request, kind)
      await this.#api.start(start.name)
      return { error: null }
    } catch (error) {
      return refusalOf(error, (why) => ({ error: `container: ${why}`, refused: NO_CONTAINER }))
    }
  }

  async remove(name: string): Promise<void> {
    await this.#api.remove(name).catch((error: unknown) => this.#later(error))
  }

  removeOthers(isNeeded: (name: string) => boolean): void {
    this.#isNeeded = isNeeded
    void this.#removeOthers().catch((error: unknown) => this.#later(error))
  }

  close(): void {
    this.#isClosed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  async #removeOthers(): Promise<void> {
    for (const name of await this.#api.names(ownerLabel(this.#owner)))
      if (!this.#isClosed && !this.#isNeeded(name)) await this.#api.remove(name)
  }

  #later(error: unknown): void {
    if (this.#isClosed || this.#timer !== null) return
    this.#options.onNote(`a container cannot be removed yet: ${wordsOf(error)}`)
    this.#timer = setTimeout(() => {
      this.#timer = null
      this.removeOthers(this.#isNeeded)
    }, REMOVE_AGAIN_MS)
    this.#timer.unref()
  }
}

/** The engine answered: the reason is the image's or the container's. It did not: the host's. */
function refusalOf(error: unknown, ofAnswer: (why: string) => Refused): Refused {
  const words = wordsOf(error)
  if (error instanceof EngineFault && error.status !== null) return ofAnswer(words)
  return { error: words, refused: NO_RUNTIME }
}

function imageMissing(error: string): Refused {
  return { error, refused: { cause: 'task', code: 'image_not_available' } }
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
