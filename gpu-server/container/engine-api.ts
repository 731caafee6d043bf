/**
 * The part of the Docker Engine API that tasks need, as Docker and podman serve it. Podman ignores the device
 * requests of that API, so containers are made there through its own API.
 */
import { repositoryOf } from '../../protocol/image-reference.ts'
import type { PrepareOptions } from '../guard/containers.ts'
import { askEngine, EngineFault, type EngineRequest } from './engine-socket.ts'
import { fieldsOf, PullProgress } from './pull-progress.ts'

export type EngineKind = 'docker' | 'podman'

export interface EngineVersion {
  readonly kind: EngineKind
  readonly version: string
}

export interface ImageFacts {
  readonly id: string
  readonly workingDirectory: string
  /** The names and digests under which registries have it, such as `docker.io/team/train@sha256:…`. */
  readonly repoDigests: readonly string[]
}

/** An engine that its socket activates needs a moment. */
const PROBE_MS = 15_000
const LOOK_MS = 30_000
/** Creating and removing a container copies or deletes files. */
const CHANGE_MS = 120_000
/** Time limit of a pull without progress. */
const PULL_IDLE_MS = 120_000
/** podman 4 and later serve it. */
export const LIBPOD = '/v4.0.0/libpod'
const IMAGE_ID = /^(sha256:)?[0-9a-f]{64}$/
const MAX_PATH_CHARACTERS = 1_024
const MAX_REPO_DIGESTS = 256

export class EngineApi {
  readonly socketPath: string

  constructor(socketPath: string) {
    this.socketPath = socketPath
  }

  async version(): Promise<EngineVersion> {
    const answer = await this.#json({ method: 'GET', path: '/version', idleMs: PROBE_MS })
    const components = Array.isArray(answer['Components']) ? (answer['Components'] as readonly unknown[]) : []
    const isPodman = components.some((each) => String(fieldsOf(each)['Name']).startsWith('Podman'))
    return { kind: isPodman ? 'podman' : 'docker', version: textIn(answer, 'Version').slice(0, 40) }
  }

  /** Whether the engine runs as an ordinary user, and whether it can limit containers. */
  async abilities(): Promise<{ readonly isRootless: boolean; readonly canLimit: boolean }> {
    const answer = await this.#json({ method: 'GET', path: '/info', idleMs: LOOK_MS })
    const options = Array.isArray(answer['SecurityOptions'])
      ? (answer['SecurityOptions'] as readonly unknown[])
      : []
    return {
      isRootless: options.some((each) => String(each).includes('name=rootless')),
      canLimit: ['MemoryLimit', 'CpuCfsQuota', 'PidsLimit'].every((name) => answer[name] === true),
    }
  }

  /** Null: the engine does not have it. */
  async image(reference: string): Promise<ImageFacts | null> {
    const path = `/images/${reference}/json`
    const answer = await this.#json({ method: 'GET', path, idleMs: LOOK_MS }).catch(nullIfMissing)
    if (answer === null) return null
    const id = textIn(answer, 'Id')
    if (!IMAGE_ID.test(id)) throw new EngineFault('the engine returned no ID for the image')
    const folder = fieldsOf(answer['Config'])['WorkingDir']
    const isFolder =
      typeof folder === 'string' && folder.startsWith('/') && folder.length < MAX_PATH_CHARACTERS
    const digests = Array.isArray(answer['RepoDigests']) ? (answer['RepoDigests'] as readonly unknown[]) : []
    const repoDigests = digests.filter((each) => typeof each === 'string').slice(0, MAX_REPO_DIGESTS)
    return { id, workingDirectory: isFolder ? folder : '/', repoDigests }
  }

  /** Rejects with EngineFault also when the error is in the stream of an answer that began well. */
  async pull(
    reference: string,
    headers: Readonly<Record<string, string>>,
    { signal, onProgress }: Pick<PrepareOptions, 'signal' | 'onProgress'>,
  ): Promise<void> {
    const { name, tag } = partsOf(reference)
    const query = new URLSearchParams({ fromImage: name, tag })
    let problem: string | null = null
    const progress = new PullProgress()
    await askEngine(this.socketPath, {
      method: 'POST',
      path: `/images/create?${query}`,
      headers,
      idleMs: PULL_IDLE_MS,
      signal,
      onLine: (line) => {
        const said = fieldsIn(line)
        problem = errorIn(said) ?? problem
        if (progress.take(said)) onProgress?.(progress.bytesDone, progress.bytesTotal)
      },
    })
    if (problem !== null) throw new EngineFault(problem, 404)
  }

  async create(name: string, body: unknown, kind: EngineKind): Promise<void> {
    const path =
      kind === 'podman'
        ? `${LIBPOD}/containers/create`
        : `/containers/create?name=${encodeURIComponent(name)}`
    await askEngine(this.socketPath, { method: 'POST', path, body, idleMs: CHANGE_MS })
  }

  async start(name: string): Promise<void> {
    const path = `/containers/${encodeURIComponent(name)}/start`
    await askEngine(this.socketPath, { method: 'POST', path, idleMs: CHANGE_MS })
  }

  /** Removes the container with its processes and anonymous volumes. Resolves also if it does not exist. */
  async remove(name: string): Promise<void> {
    const path = `/containers/${encodeURIComponent(name)}?force=true&v=true`
    await askEngine(this.socketPath, { method: 'DELETE', path, idleMs: CHANGE_MS }).catch(nullIfMissing)
  }

  /** Names of all containers with the label, running or not. */
  async names(label: string): Promise<readonly string[]> {
    const query = new URLSearchParams({ all: 'true', filters: JSON.stringify({ label: [label] }) })
    const text = await askEngine(this.socketPath, {
      method: 'GET',
      path: `/containers/json?${query}`,
      idleMs: LOOK_MS,
    })
    const found = parsed(text)
    if (!Array.isArray(found)) throw new EngineFault('the engine did not list its containers')
    return found.flatMap((each) => {
      const names = fieldsOf(each)['Names']
      return Array.isArray(names) && typeof names[0] === 'string' ? [names[0].replace(/^\//, '')] : []
    })
  }

  async #json(asked: EngineRequest): Promise<Readonly<Record<string, unknown>>> {
    return fieldsOf(parsed(await askEngine(this.socketPath, asked)))
  }
}

/** An engine pulls all tags where none is named. */
export function partsOf(reference: string): { readonly name: string; readonly tag: string } {
  const [withTag = '', digest] = reference.split('@')
  const name = repositoryOf(reference)
  return { name, tag: digest ?? (withTag.slice(name.length + 1) || 'latest') }
}

function nullIfMissing(error: unknown): null {
  if (error instanceof EngineFault && error.status === 404) return null
  throw error
}

function errorIn({ error }: Readonly<Record<string, unknown>>): string | null {
  return typeof error === 'string' ? error.replace(/\s+/g, ' ').slice(0, 300) : null
}

/** A line that is no JSON says nothing. */
function fieldsIn(line: string): Readonly<Record<string, unknown>> {
  try {
    return fieldsOf(JSON.parse(line))
  } catch {
    return {}
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new EngineFault('the engine returned a response that is not JSON')
  }
}

function textIn(answer: Readonly<Record<string, unknown>>, field: string): string {
  const text = answer[field]
  return typeof text === 'string' ? text : ''
}
