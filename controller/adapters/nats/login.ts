/** Security and login of a connection, as options of the NATS library. */
import { checkServerIdentity } from 'node:tls'
import type { PeerCertificate } from 'node:tls'
import { nkeyAuthenticator } from '@nats-io/transport-node'
import type { ConnectionOptions } from '@nats-io/transport-node'

/** `seed`: of an nkey user, as in its file (`SU…`). */
export type NatsAuth =
  | { readonly kind: 'none' }
  | { readonly kind: 'password'; readonly user: string; readonly password: string }
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'nkey'; readonly seed: Uint8Array }

/** PEM. Without them the system's authorities are trusted and no certificate is sent. */
export interface NatsTls {
  readonly ca: string | null
  readonly cert: string | null
  readonly key: string | null
}

export function loginOptions(
  urls: readonly string[],
  auth: NatsAuth,
  tls: NatsTls | null,
): ConnectionOptions {
  return { ...authOptions(auth), ...(tls === null ? {} : { tls: tlsOptions(urls, tls) }) }
}

function authOptions(auth: NatsAuth): ConnectionOptions {
  switch (auth.kind) {
    case 'none':
      return {}
    case 'password':
      return { user: auth.user, pass: auth.password }
    case 'token':
      return { token: auth.token }
    case 'nkey':
      return { authenticator: nkeyAuthenticator(auth.seed) }
  }
}

/** For a broker given by address the library would compare the certificate with `localhost`. */
function tlsOptions(
  urls: readonly string[],
  { ca, cert, key }: NatsTls,
): NonNullable<ConnectionOptions['tls']> {
  const hosts = urls.map((url) => new URL(url).hostname.replace(/^\[|\]$/g, ''))
  const options = {
    ...(ca === null ? {} : { ca }),
    ...(cert === null ? {} : { cert }),
    ...(key === null ? {} : { key }),
    checkServerIdentity: (_host: string, certificate: PeerCertificate): Error | undefined =>
      identityFault(hosts, certificate),
  }
  return options
}

/** Checks the certificate against all configured brokers. */
function identityFault(hosts: readonly string[], certificate: PeerCertificate): Error | undefined {
  let fault: Error | undefined
  for (const host of hosts) {
    fault = checkServerIdentity(host, certificate)
    if (fault === undefined) return undefined
  }
  return fault
}
