/**
 * The API server as kubectl reaches it: its files, contexts and ways to authenticate are those of the user.
 * A plugin is called by kubectl, so that kubectl is there.
 */
import { execFile } from 'node:child_process'
import { pathOf } from '../../operator/adapters/kube-client.ts'
import {
  CONFLICT,
  type DeleteOptions,
  type KubeApi,
  KubeError,
  type KubeList,
  type KubeObject,
  type KubePatch,
  type ListOptions,
  NOT_FOUND,
  type ObjectKey,
  type ResourceKind,
  type WriteOptions,
} from '../../operator/ports/kube-api.ts'
import {
  CommandFailure,
  EXIT_CONFLICT,
  EXIT_DENIED,
  EXIT_FAILED,
  EXIT_NO_CONNECTION,
  EXIT_NOT_FOUND,
  EXIT_USAGE,
} from '../../services/exit-codes.ts'

/** The part of the API that the commands of the plugin need. */
export type ClusterApi = Pick<KubeApi, 'get' | 'list' | 'create' | 'patch' | 'delete'>

export interface KubectlOptions {
  readonly namespace?: string
  readonly context?: string
  readonly kubeconfig?: string
}

/** The largest clusters print some hundred megabytes. */
const MAX_OUTPUT_BYTES = 512 * 1024 * 1024
const TIMEOUT = '30s'

export class KubectlApi implements ClusterApi {
  readonly #options: KubectlOptions

  constructor(options: KubectlOptions) {
    this.#options = options
  }

  /** Without a namespace in the key, in that of the option or of the context. */
  async get(kind: ResourceKind, { namespace, name }: ObjectKey): Promise<KubeObject> {
    return this.#object(['get', resourceOf(kind), name, '-o', 'json'], this.#inside(kind, namespace))
  }

  /** All pages at once. */
  async list(kind: ResourceKind, { namespace, labelSelector }: ListOptions = {}): Promise<KubeList> {
    const where =
      namespace === undefined ? (kind.isNamespaced ? ['--all-namespaces'] : []) : ['--namespace', namespace]
    const selector = labelSelector === undefined ? [] : ['--selector', labelSelector]
    const answer = await this.#object(['get', resourceOf(kind), '-o', 'json', ...selector], where)
    return {
      items: answer['items'] as readonly KubeObject[],
      resourceVersion: answer.metadata.resourceVersion ?? '',
      continueFrom: null,
    }
  }

  async create(
    _kind: ResourceKind,
    object: KubeObject,
    { isDryRun = false }: WriteOptions = {},
  ): Promise<KubeObject> {
    const args = ['create', '-f', '-', '-o', 'json', ...(isDryRun ? ['--dry-run=server'] : [])]
    return this.#object(args, this.#inNamespace(object.metadata.namespace), object)
  }

  async patch(
    kind: ResourceKind,
    { namespace, name }: ObjectKey,
    { type, body }: KubePatch,
  ): Promise<KubeObject> {
    const change = [`--type=${type}`, `--patch=${JSON.stringify(body)}`, '-o', 'json']
    return this.#object(['patch', resourceOf(kind), name, ...change], this.#inside(kind, namespace))
  }

  async delete(
    kind: ResourceKind,
    { namespace, name }: ObjectKey,
    preconditions: DeleteOptions = {},
  ): Promise<void> {
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions }
    await this.#run(['delete', '--raw', pathOf(kind, namespace, name), '-f', '-'], [], body)
  }

  /** Returns the output of `kubectl get` for all namespaces. */
  everything(...resources: readonly string[]): Promise<string> {
    return this.#run(['get', resources.join(','), '--all-namespaces', '-o', 'json'], [])
  }

  /** Such as `v1.36.4`. */
  async version(): Promise<string> {
    const { gitVersion } = JSON.parse(await this.#run(['get', '--raw', '/version'], [])) as {
      gitVersion: string
    }
    return gitVersion
  }

  #inside({ isNamespaced }: ResourceKind, namespace?: string): readonly string[] {
    return isNamespaced ? this.#inNamespace(namespace) : []
  }

  #inNamespace(namespace = this.#options.namespace): readonly string[] {
    return namespace === undefined ? [] : ['--namespace', namespace]
  }

  async #object(args: readonly string[], where: readonly string[], input?: object): Promise<KubeObject> {
    return JSON.parse(await this.#run(args, where, input)) as KubeObject
  }

  #run(args: readonly string[], where: readonly string[], input?: object): Promise<string> {
    const { context, kubeconfig } = this.#options
    const all = [
      ...args,
      ...where,
      `--request-timeout=${TIMEOUT}`,
      ...(context === undefined ? [] : ['--context', context]),
      ...(kubeconfig === undefined ? [] : ['--kubeconfig', kubeconfig]),
    ]
    return new Promise((resolve, reject) => {
      const child = execFile('kubectl', all, { maxBuffer: MAX_OUTPUT_BYTES }, (error, stdout, stderr) =>
        error === null ? resolve(stdout) : reject(faultOf(error, stderr)),
      )
      // It may end before it has read everything; its exit says why.
      child.stdin?.on('error', () => {})
      child.stdin?.end(input === undefined ? '' : JSON.stringify(input))
    })
  }
}

/** `gpunodes.v1alpha1.headroom.dev`: another group may have the same name. */
function resourceOf({ group, version, plural }: ResourceKind): string {
  return group === '' ? plural : `${plural}.${version}.${group}`
}

const CODES: Readonly<Record<string, number>> = {
  NotFound: NOT_FOUND,
  Forbidden: 403,
  Unauthorized: 401,
  Conflict: CONFLICT,
  AlreadyExists: CONFLICT,
}
const NO_CONNECTION = /onnect(ion)? to the server|deadline exceeded|no such host|dial tcp/
const BAD_CONFIG = /config|context|^(error: )?stat /
const UNKNOWN_RESOURCE = /server doesn't have a resource type|no matches for kind/

export function faultOf(error: Error & { readonly code?: unknown }, stderr: string): Error {
  if (error.code === 'ENOENT')
    return new CommandFailure('kubectl was not found in PATH. Install kubectl, or correct PATH.')
  const lines = stderr.split('\n').filter((line) => line !== '' && !/^(Warning:|[EIW]\d{4} )/.test(line))
  const text = lines.join(' ').trim() || error.message
  const refused = /^Error from server \((\w+)\):\s*(?:error when creating "STDIN": )?(.*)$/s.exec(text)
  if (refused !== null) {
    const [, reason = '', message = ''] = refused
    return new KubeError(CODES[reason] ?? 500, reason, message)
  }
  if (UNKNOWN_RESOURCE.test(text)) return new KubeError(NOT_FOUND, 'NotFound', text.replace(/^error: /, ''))
  const exitCode = /must be logged in to the server/.test(text)
    ? EXIT_DENIED
    : !NO_CONNECTION.test(text) && BAD_CONFIG.test(text)
      ? EXIT_USAGE
      : EXIT_NO_CONNECTION
  return new CommandFailure(`kubectl: ${text}`, exitCode)
}

/** Turns a refusal of the API server into a message and an exit code. */
export async function withCluster(
  options: KubectlOptions,
  action: (api: KubectlApi) => Promise<number>,
): Promise<number> {
  try {
    return await action(new KubectlApi(options))
  } catch (error) {
    if (error instanceof KubeError) throw new CommandFailure(error.message, exitCodeOf(error))
    throw error
  }
}

function exitCodeOf({ code }: KubeError): number {
  if (code === NOT_FOUND) return EXIT_NOT_FOUND
  if (code === CONFLICT) return EXIT_CONFLICT
  return code === 401 || code === 403 ? EXIT_DENIED : EXIT_FAILED
}
