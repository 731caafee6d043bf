/**
 * The GPUNode of one node. Changes of its status are made against its version, those that arrive during a
 * write together in the next one.
 */
import { isDeepStrictEqual } from 'node:util'
import { GPU_NODE, type GPUNodeStatus } from '../contract/policies.ts'
import {
  CONFLICT,
  type KubeApi,
  KubeError,
  type KubeObject,
  NOT_FOUND,
  ownResource,
} from '../ports/kube-api.ts'

/** Returns the new status, or why the status stays as it is. */
export type StatusChange = (status: GPUNodeStatus) => GPUNodeStatus | string

interface Wanted {
  readonly change: StatusChange
  /** Null: it is stored, or nothing had to change. */
  readonly done: (why: string | null) => void
  readonly failed: (error: unknown) => void
}

const KIND = ownResource(GPU_NODE)
const TRIES = 10

export class NodeBook {
  readonly nodeName: string
  readonly #api: KubeApi
  #object: KubeObject | null
  #last: Promise<unknown> = Promise.resolve()
  #wanted: Wanted[] = []

  /** @param object as it was last seen; null: it does not exist */
  constructor(api: KubeApi, nodeName: string, object: KubeObject | null) {
    this.#api = api
    this.nodeName = nodeName
    this.#object = object
  }

  /** Empty: it is not known. */
  get uid(): string {
    return this.#object?.metadata.uid ?? ''
  }

  get generation(): number {
    return this.#object?.metadata.generation ?? 1
  }

  /** The status as it was last written or read. */
  get status(): GPUNodeStatus {
    return statusOf(this.#object)
  }

  /** Resolves with null once the change is stored, or with the reason of the change why it is not. */
  change(change: StatusChange): Promise<string | null> {
    const stored = new Promise<string | null>((done, failed) => this.#wanted.push({ change, done, failed }))
    this.#last = this.#last.then(() => this.#write(this.#wanted.splice(0)))
    return stored
  }

  /** Reads the stored status again. */
  reread(): Promise<GPUNodeStatus> {
    const done = this.#last.then(async () => statusOf((this.#object = await this.#read())))
    this.#last = done.catch(() => {})
    return done
  }

  /** Deletes the stored GPUNode, unless it has claims or changes meanwhile. */
  removeWithoutClaims(): Promise<void> {
    const done = this.#last.then(() => this.#remove())
    this.#last = done.catch(() => {})
    return done
  }

  async #remove(): Promise<void> {
    const { resourceVersion } = this.#object?.metadata ?? {}
    if (resourceVersion === undefined || (this.status.claims ?? []).length > 0) return
    this.#object = null
    try {
      await this.#api.delete(KIND, { name: this.nodeName }, { resourceVersion })
    } catch (error) {
      if (!(error instanceof KubeError) || ![CONFLICT, NOT_FOUND].includes(error.code)) throw error
    }
  }

  async #write(wanted: readonly Wanted[]): Promise<void> {
    if (wanted.length === 0) return
    try {
      const answers = await this.#change(wanted)
      for (const [place, { done }] of wanted.entries()) done(answers[place] ?? null)
    } catch (error) {
      for (const { failed } of wanted) failed(error)
    }
  }

  /** Resolves with the reason of each change that is refused. */
  async #change(wanted: readonly Wanted[]): Promise<readonly (string | null)[]> {
    for (let tries = 1; ; tries += 1) {
      const object = (this.#object ??= await this.#read())
      const before = statusOf(object)
      let status = before
      const refused = wanted.map(({ change }) => {
        const changed = change(status)
        if (typeof changed === 'string') return changed
        status = changed
        return null
      })
      if (isDeepStrictEqual(status, before)) return refused
      try {
        this.#object = await this.#api.replace(KIND, { ...object, status }, { subresource: 'status' })
        return refused
      } catch (error) {
        // The known object is out of date. After another failure it may be.
        this.#object = null
        const isRetried = error instanceof KubeError && [CONFLICT, NOT_FOUND].includes(error.code)
        if (!isRetried || tries === TRIES) throw error
      }
    }
  }

  async #read(): Promise<KubeObject> {
    const metadata = { name: this.nodeName }
    try {
      return await this.#api.get(KIND, metadata)
    } catch (error) {
      if (!(error instanceof KubeError) || error.code !== NOT_FOUND) throw error
      return this.#api.create(KIND, { metadata })
    }
  }
}

function statusOf(object: KubeObject | null): GPUNodeStatus {
  return (object?.['status'] ?? {}) as GPUNodeStatus
}
