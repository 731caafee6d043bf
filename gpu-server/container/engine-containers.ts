/** Containers of tasks on one engine: its images, their starts, and what is left of them. */
import { createHash } from 'node:crypto'
import { fullNameOf } from '../../protocol/image-reference.ts'
import type {
  Containers,
  ContainerStart,
  PreparedImage,
  PrepareOptions,
  Refused,
} from '../guard/containers.ts'
import { NO_CONTAINER, NO_NETWORK, NO_RUNTIME } from '../guard/launch-refusal.ts'
import { ContainerRemovals } from './container-removals.ts'
import { containerRequest, ownerLabel } from './container-request.ts'
import { EngineApi, type EngineKind } from './engine-api.ts'
import { EngineFault } from './engine-socket.ts'
import { imageMissing, NO_PROGRESS, pullRefusal } from './pull-refusal.ts'
import { loginFor } from './registry-credentials.ts'
import { TaskNetworks } from './task-networks.ts'
import { errorText } from '../../protocol/error-text.ts'

export type PullPolicy = 'missing' | 'always' | 'never'

/** An engine that answered when the server started. */
export interface Engine {
  readonly kind: EngineKind
  readonly version: string
  readonly socketPath: string
  readonly isRootless: boolean
  /** The engine can limit memory, processors and processes of a container. */
  readonly canLimit: boolean
}

export interface EngineContainersOptions {
  readonly engine: Engine
  /** Folder of this server only. Containers of other servers on the engine are not touched. */
  readonly stateFolder: string
  readonly pull: PullPolicy
  /** File with logins for registries; absent: none. */
  readonly credentials?: string | null
  readonly onNote: (line: string) => void
}

const OWNER_DIGITS = 16
const SEEN_FOR_MS = 60_000

export class EngineContainers implements Containers {
  readonly #options: EngineContainersOptions
  readonly #api: EngineApi
  readonly #networks: TaskNetworks
  readonly #owner: string
  readonly #removals: ContainerRemovals
  readonly #seen = new Map<string, { readonly isHere: boolean; readonly at: number }>()

  constructor(options: EngineContainersOptions) {
    this.#options = options
    this.#api = new EngineApi(options.engine.socketPath)
    this.#owner = createHash('sha256').update(options.stateFolder).digest('hex').slice(0, OWNER_DIGITS)
    this.#networks = new TaskNetworks(options.engine, ownerLabel(this.#owner))
    this.#removals = new ContainerRemovals({
      remove: (name) => this.#remove(name),
      names: () => this.#names(),
      onNote: options.onNote,
    })
  }

  /** The engine can enforce limits. */
  get canLimit(): boolean {
    return this.#options.engine.canLimit
  }

  async prepare(image: string, options: PrepareOptions): Promise<PreparedImage | Refused> {
    try {
      const { pull } = this.#options
      const isOld = pull === 'always' && options.isPrepared !== true
      const before = isOld ? null : await this.#api.image(image)
      if (before === null && pull === 'never') return imageMissing(`image ${image}: not found on this host`)
      const refused = before === null ? await this.#pull(image, options) : null
      if (refused !== null) return refused
      const found = before ?? (await this.#api.image(image))
      if (found === null) return imageMissing(`image ${image}: the engine pulled it, but does not have it`)
      if (this.#seen.has(image)) this.#seen.set(image, { isHere: true, at: performance.now() })
      const { id, workingDirectory, repoDigests } = found
      return { error: null, imageId: id, workingDirectory, digest: digestOf(image, repoDigests) }
    } catch (error) {
      return refusalOf(error, (why) => imageMissing(`image ${image}: ${why}`))
    }
  }

  /** Resolves with why the image could not be pulled, or null. */
  async #pull(image: string, options: PrepareOptions): Promise<Refused | null> {
    const login = this.#login(image)
    try {
      await this.#api.pull(image, login, options)
      return null
    } catch (error) {
      if (options.signal.aborted || !(error instanceof EngineFault)) throw error
      // No answer to the pull: an engine that answers otherwise waits for the registry.
      if (error.status === null) await this.#api.image(image)
      return pullRefusal(image, error.status === null ? NO_PROGRESS : error.message)
    }
  }

  /** The file is read for each pull: logins expire and are renewed. */
  #login(image: string): Readonly<Record<string, string>> {
    const { credentials = null } = this.#options
    const login = credentials === null ? null : loginFor(image, credentials)
    return login === null ? {} : { 'X-Registry-Auth': login }
  }

  /** Asks the engine about each image at most once a minute. */
  async imagesHere(images: readonly string[]): Promise<readonly string[]> {
    if (this.#options.pull === 'always') return []
    for (const image of [...this.#seen.keys()]) if (!images.includes(image)) this.#seen.delete(image)
    for (const image of images) {
      const seen = this.#seen.get(image)
      if (seen !== undefined && performance.now() - seen.at < SEEN_FOR_MS) continue
      const isHere = await this.#api.image(image).then(
        (found) => found !== null,
        () => false,
      )
      this.#seen.set(image, { isHere, at: performance.now() })
    }
    return images.filter((image) => this.#seen.get(image)?.isHere === true)
  }

  async start(start: ContainerStart): Promise<{ readonly error: null } | Refused> {
    const { kind, isRootless } = this.#options.engine
    let network: string | null
    try {
      network = await this.#networks.make(start.name)
    } catch (error) {
      return refusalOf(error, (why) => ({ error: `network of the container: ${why}`, refused: NO_NETWORK }))
    }
    try {
      const request = containerRequest(start, { kind, isRootless, owner: this.#owner, network })
      await this.#api.create(start.name, request, kind)
      await this.#api.start(start.name)
      return { error: null }
    } catch (error) {
      return refusalOf(error, (why) => ({ error: `container: ${why}`, refused: NO_CONTAINER }))
    }
  }

  remove(name: string): Promise<void> {
    return this.#removals.remove(name)
  }

  removeOthers(isNeeded: (name: string) => boolean): void {
    this.#removals.removeOthers(isNeeded)
  }

  close(): void {
    this.#removals.close()
  }

  async #names(): Promise<readonly string[]> {
    const label = ownerLabel(this.#owner).join('=')
    return [...(await this.#api.names(label)), ...(await this.#networks.containers())]
  }

  async #remove(name: string): Promise<void> {
    await this.#api.remove(name)
    await this.#networks.remove(name)
  }
}

/**
 * The digest under which the registry of the reference has the image. The same image may have others under
 * other names, which the registry of this one need not have.
 */
export function digestOf(reference: string, repoDigests: readonly string[]): string | null {
  const name = fullNameOf(reference)
  const own = repoDigests.find((each) => fullNameOf(each) === name)
  const digest = own?.split('@')[1] ?? ''
  return /^sha256:[0-9a-f]{64}$/.test(digest) ? digest : null
}

/** The engine answered: the reason is the image's or the container's. It did not: the host's. */
function refusalOf(error: unknown, ofAnswer: (why: string) => Refused): Refused {
  const words = errorText(error)
  if (error instanceof EngineFault && error.status !== null) return ofAnswer(words)
  return { error: words, refused: NO_RUNTIME }
}
