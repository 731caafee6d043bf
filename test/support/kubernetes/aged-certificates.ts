/** Certificates of a running stack as they are after most of their life: its components renew them. */
import { X509Certificate } from 'node:crypto'
import { connect } from 'node:tls'
import { makeCertificate } from '../../../operator/adapters/x509.ts'
import { type KubeApi, SECRETS } from '../../../operator/ports/kube-api.ts'
import { STACK_NAMESPACE } from './account.ts'

const DAY_MS = 86_400_000
/** More than two thirds of 90 days, and of two years. */
const AGES = { server: { past: 61, left: 29 }, client: { past: 500, left: 230 } } as const
const SERVERS = ['headroom-admission', 'headroom-extender'] as const
const CLIENTS = ['headroom-scheduler', 'headroom-agent', 'headroom-forecast'] as const
export const CERTIFICATES = [...SERVERS, ...CLIENTS]

type Texts = Readonly<Record<string, string>>

export async function ageCertificates(api: KubeApi): Promise<void> {
  const authorityOf = async (name: string) => {
    const texts = await textsOf(api, name)
    return { cert: texts['ca.crt'] ?? '', key: texts['ca.key'] ?? '' }
  }
  const extender = await authorityOf('headroom-extender')
  for (const name of SERVERS) await age(api, name, 'server', await authorityOf(name))
  for (const name of CLIENTS) await age(api, name, 'client', extender)
}

/** Whether a third of its life is not yet over. */
export async function isYoung(api: KubeApi, name: string): Promise<boolean> {
  const { validFromDate } = await storedCertificate(api, name)
  return Date.now() - validFromDate.getTime() < DAY_MS
}

export async function storedCertificate(api: KubeApi, name: string): Promise<X509Certificate> {
  return new X509Certificate((await textsOf(api, name))['tls.crt'] ?? '')
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

async function age(
  api: KubeApi,
  name: string,
  purpose: keyof typeof AGES,
  authority: { readonly cert: string; readonly key: string },
): Promise<void> {
  const { subject, subjectAltName = '' } = await storedCertificate(api, name)
  const { past, left } = AGES[purpose]
  const now = Date.now()
  const { cert, key } = makeCertificate(authority, {
    ...{ purpose, subject: subject.replace(/^CN=/, '') },
    names: subjectAltName === '' ? [] : subjectAltName.split(', ').map((each) => each.replace('DNS:', '')),
    validity: { from: now - past * DAY_MS, to: now + left * DAY_MS },
  })
  const data = Object.fromEntries(
    Object.entries({ 'tls.crt': cert, 'tls.key': key }).map(([file, text]) => [
      file,
      Buffer.from(text).toString('base64'),
    ]),
  )
  await api.patch(SECRETS, { namespace: STACK_NAMESPACE, name }, { type: 'merge', body: { data } })
}

async function textsOf(api: KubeApi, name: string): Promise<Texts> {
  const { data = {} } = await api.get(SECRETS, { namespace: STACK_NAMESPACE, name })
  const entries = Object.entries(data as Texts)
  return Object.fromEntries(
    entries.map(([file, text]) => [file, Buffer.from(text, 'base64').toString('utf8')]),
  )
}
