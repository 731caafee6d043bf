/**
 * Where the API server is, and who asks: the ServiceAccount of a pod, or a context of a kubeconfig file.
 * Decision 0161 says which kinds of credentials are supported.
 */
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { parse } from 'yaml'

export interface KubeConnection {
  /** `https://host:port`, without a path. */
  readonly server: string
  /** Certificates of authorities in PEM; those of the system if undefined. */
  readonly ca: string | undefined
  readonly clientCertificate: { readonly cert: string; readonly key: string } | undefined
  /** Read for each request, because the kubelet renews it. */
  readonly token: () => string | null
}

/** A fault of the configuration; the message names the file and the field. */
class KubeConfigError extends Error {
  override readonly name = 'KubeConfigError'
}

const ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount'

/** Returns null outside a pod. */
export function inClusterConnection(
  env: Readonly<Record<string, string | undefined>>,
  folder = ACCOUNT_FOLDER,
): KubeConnection | null {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = '443' } = env
  if (host === undefined) return null
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    ca: readText(`${folder}/ca.crt`),
    clientCertificate: undefined,
    token: () => readText(`${folder}/token`).trim(),
  }
}

type Fields = Readonly<Record<string, unknown>>

/** The current context of a kubeconfig file, or the one that is named. */
export function kubeconfigConnection(file: string, contextName?: string): KubeConnection {
  const config = fieldsOf(parse(readText(file)), file, 'the file')
  const name = contextName ?? config['current-context']
  if (typeof name !== 'string' || name === '')
    throw new KubeConfigError(`${file}: current-context is missing.`)
  const context = named(config, 'contexts', 'context', name, file)
  const cluster = named(config, 'clusters', 'cluster', String(context['cluster']), file)
  const user = named(config, 'users', 'user', String(context['user']), file)
  const { server } = cluster
  if (typeof server !== 'string' || !server.startsWith('https://'))
    throw new KubeConfigError(`${file}: the server of context ${name} must be an https URL.`)
  if (cluster['insecure-skip-tls-verify'] === true)
    throw new KubeConfigError(
      `${file}: insecure-skip-tls-verify is not supported. Set certificate-authority.`,
    )
  for (const unsupported of ['exec', 'auth-provider', 'username'])
    if (user[unsupported] !== undefined)
      throw new KubeConfigError(
        `${file}: ${unsupported} of user ${String(context['user'])} is not supported. ` +
          'Use a token or a client certificate.',
      )
  return {
    server: new URL(server).origin,
    ca: content(cluster, 'certificate-authority', file),
    clientCertificate: certificateOf(user, file),
    token: tokenOf(user, file),
  }
}

function certificateOf(user: Fields, file: string): KubeConnection['clientCertificate'] {
  const [cert, key] = [content(user, 'client-certificate', file), content(user, 'client-key', file)]
  return cert === undefined || key === undefined ? undefined : { cert, key }
}

function tokenOf(user: Fields, file: string): () => string | null {
  const { tokenFile, token } = user
  if (typeof tokenFile === 'string') return () => readText(resolve(dirname(file), tokenFile)).trim()
  return () => (typeof token === 'string' ? token : null)
}

/** The text of `NAME-data` (base64), or of the file that `NAME` names. */
function content(fields: Fields, name: string, file: string): string | undefined {
  const data = fields[`${name}-data`]
  if (typeof data === 'string') return Buffer.from(data, 'base64').toString('utf8')
  const path = fields[name]
  return typeof path === 'string' ? readText(resolve(dirname(file), path)) : undefined
}

function named(config: Fields, list: string, field: string, name: string, file: string): Fields {
  const entries: unknown = config[list]
  const entry: unknown = Array.isArray(entries)
    ? entries.find((each) => (each as Fields | null)?.['name'] === name)
    : undefined
  return fieldsOf((entry as Fields | undefined)?.[field], file, `${field} ${name}`)
}

function fieldsOf(value: unknown, file: string, what: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new KubeConfigError(`${file}: ${what} is missing or not an object.`)
  return value as Fields
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new KubeConfigError(`${file} cannot be read. Check the path and its permissions.`, { cause: error })
  }
}
