/** Certificates of a running stack as they are after most of their life: its components renew them. */
import { X509Certificate } from 'node:crypto'
import { connect } from 'node:tls'
import {
  type Issued,
  makeAuthority,
  makeCertificate,
  type Validity,
} from '../../../operator/adapters/x509.ts'
import { type KubeApi, SECRETS } from '../../../operator/ports/kube-api.ts'
import { STACK_NAMESPACE } from './account.ts'

const DAY_MS = 86_400_000
/** More than two thirds of 90 days, and of two years. */
const AGES = { server: { past: 61, left: 29 }, client: { past: 500, left: 230 } } as const
export const SERVERS = ['headroom-admission', 'headroom-extender'] as const
export const CLIENTS = ['headroom-scheduler', 'headroom-agent', 'headroom-forecast'] as const
export const CERTIFICATES = [...SERVERS, ...CLIENTS]

type Texts = Readonly<Record<string, string>>

/** @param authorities: they age too, with the same keys and names, so that all accept each other */
export async function ageCertificates(api: KubeApi, { authorities = false } = {}): Promise<void> {
  const authorityOf = async (name: string): Promise<Issued> => {
    const { 'ca.crt': cert = '', 'ca.key': key = '' } = await storedTexts(api, name)
    return authorities
      ? makeAuthority(commonName(new X509Certificate(cert)), validity('client'), { key })
      : { cert, key }
  }
  const [admission, extender] = [await authorityOf(SERVERS[0]), await authorityOf(SERVERS[1])]
  await age(api, SERVERS[0], 'server', admission)
  await age(api, SERVERS[1], 'server', extender)
  for (const name of CLIENTS) await age(api, name, 'client', extender)
}

/** Whether a third of its life is not yet over. */
export async function isYoung(api: KubeApi, name: string): Promise<boolean> {
  const { validFromDate } = await storedCertificate(api, name)
  return Date.now() - validFromDate.getTime() < DAY_MS
}

export async function storedCertificate(api: KubeApi, name: string): Promise<X509Certificate> {
  return new X509Certificate((await storedTexts(api, name))['tls.crt'] ?? '')
}

/** Fingerprint of the certificate that is served there; null: nothing listens. */
export function servedFingerprint(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerX509Certificate()?.fingerprint256 ?? null)
      socket.destroy()
    })
    socket.on('error', () => resolve(null))
  })
}

async function age(api: KubeApi, name: string, purpose: keyof typeof AGES, authority: Issued): Promise<void> {
  const own = await storedCertificate(api, name)
  const { subjectAltName = '' } = own
  const { cert, key } = makeCertificate(authority, {
    ...{ purpose, subject: commonName(own), validity: validity(purpose) },
    names: subjectAltName === '' ? [] : subjectAltName.split(', ').map((each) => each.replace('DNS:', '')),
  })
  const ca = purpose === 'server' ? { 'ca.crt': authority.cert } : {}
  const data = Object.fromEntries(
    Object.entries({ ...ca, 'tls.crt': cert, 'tls.key': key }).map(([file, text]) => [
      file,
      Buffer.from(text).toString('base64'),
    ]),
  )
  await api.patch(SECRETS, { namespace: STACK_NAMESPACE, name }, { type: 'merge', body: { data } })
}

function commonName({ subject }: X509Certificate): string {
  return subject.replace(/^CN=/, '')
}

function validity(purpose: keyof typeof AGES): Validity {
  const { past, left } = AGES[purpose]
  return { from: Date.now() - past * DAY_MS, to: Date.now() + left * DAY_MS }
}

/** Its files. */
export async function storedTexts(api: KubeApi, name: string): Promise<Texts> {
  const { data = {} } = await api.get(SECRETS, { namespace: STACK_NAMESPACE, name })
  const entries = Object.entries(data as Texts)
  return Object.fromEntries(
    entries.map(([file, text]) => [file, Buffer.from(text, 'base64').toString('utf8')]),
  )
}
