/** Certificates in a Secret that all replicas of a component share. Of two that renew at once, one wins. */
import type { Instant } from '../../protocol/units.ts'
import {
  CONFLICT,
  type KubeApi,
  KubeError,
  type KubeObject,
  NOT_FOUND,
  type ObjectKey,
  type ResourceKind,
  SECRETS,
} from '../ports/kube-api.ts'
import { type OwnCertificates, renewedCertificates, renewedClient } from './own-certificates.ts'
import type { Issued } from './x509.ts'

export interface CertificateSecretOptions {
  readonly api: KubeApi
  readonly now: () => Instant
  /** It exists: the chart makes it, without data. */
  readonly secret: Required<ObjectKey>
}

/** The object that has to exist does not; the message says who makes it. */
class MissingObject extends Error {
  override readonly name = 'MissingObject'
}

const SERVER_FIELDS = {
  authorities: 'ca.crt',
  authorityKey: 'ca.key',
  cert: 'tls.crt',
  key: 'tls.key',
} as const
const CLIENT_FIELDS = { authorities: 'ca.crt', cert: 'tls.crt', key: 'tls.key' } as const
const TRIES = 4

/** @param names DNS names of the server. Returns what to serve now. */
export function ownCertificates(
  options: CertificateSecretOptions,
  names: readonly string[],
): Promise<OwnCertificates> {
  const { secret, now } = options
  return renewed(options, SERVER_FIELDS, (before) => renewedCertificates(before, secret.name, names, now()))
}

/** A certificate for a client of the server with these certificates, in a Secret that the client mounts. */
export function clientCertificate(
  options: CertificateSecretOptions,
  subject: string,
  server: OwnCertificates,
): Promise<Issued> {
  return renewed(options, CLIENT_FIELDS, (before) => renewedClient(before, subject, server, options.now()))
}

export async function existing(api: KubeApi, kind: ResourceKind, key: ObjectKey): Promise<KubeObject> {
  try {
    return await api.get(kind, key)
  } catch (error) {
    if (!(error instanceof KubeError) || error.code !== NOT_FOUND) throw error
    const place = key.namespace === undefined ? '' : ` in namespace ${key.namespace}`
    throw new MissingObject(`${kind.kind} ${key.name} not found${place}. The Helm chart creates it.`, {
      cause: error,
    })
  }
}

type Texts<Field extends string> = Readonly<Record<Field, string>>

async function renewed<Field extends string>(
  { api, secret }: CertificateSecretOptions,
  fields: Texts<Field>,
  renew: (before: Texts<Field> | null) => Texts<Field>,
): Promise<Texts<Field>> {
  for (let tries = 1; ; tries += 1) {
    const found = await existing(api, SECRETS, secret)
    const before = textsOf(found, fields)
    const after = renew(before)
    if (after === before) return after
    try {
      await api.replace(SECRETS, { ...found, data: dataOf(found, fields, after) })
      return after
    } catch (error) {
      const isRace = error instanceof KubeError && error.code === CONFLICT
      if (!isRace || tries === TRIES) throw error
    }
  }
}

function textsOf<Field extends string>(secret: KubeObject, fields: Texts<Field>): Texts<Field> | null {
  const data = (secret['data'] ?? {}) as Readonly<Record<string, string>>
  const entries = Object.entries<string>(fields).map(([field, name]) => [field, data[name]] as const)
  if (entries.some(([, value]) => value === undefined)) return null
  const texts = entries.map(([field, value = '']) => [field, Buffer.from(value, 'base64').toString('utf8')])
  return Object.fromEntries(texts) as Texts<Field>
}

function dataOf<Field extends string>(secret: KubeObject, fields: Texts<Field>, texts: Texts<Field>): object {
  const own = Object.entries<string>(fields).map(([field, name]) => [
    name,
    Buffer.from(texts[field as Field]).toString('base64'),
  ])
  return { ...(secret['data'] as object | undefined), ...Object.fromEntries(own) }
}
