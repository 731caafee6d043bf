/**
 * Certificates for one test: an authority, a broker certificate for these names, and a client certificate.
 * Made by openssl.
 */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Certificates {
  /** Paths of PEM files. */
  readonly ca: string
  readonly serverCert: string
  readonly serverKey: string
  readonly clientCert: string
  readonly clientKey: string
}

/** `serverNames`: as in subjectAltName, for example `IP:127.0.0.1` or `DNS:broker.example`. */
export function makeCertificates(folder: string, serverNames: string): Certificates {
  const at = (name: string): string => join(folder, name)
  const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  openssl(
    'req',
    '-x509',
    ...ec,
    '-days',
    '2',
    '-subj',
    '/CN=test authority',
    '-keyout',
    at('ca.key'),
    '-out',
    at('ca.pem'),
  )
  const signed = (name: string, subject: string, extensions: string): void => {
    writeFileSync(at(`${name}.ext`), extensions)
    openssl('req', ...ec, '-subj', subject, '-keyout', at(`${name}.key`), '-out', at(`${name}.csr`))
    openssl(
      'x509',
      '-req',
      '-in',
      at(`${name}.csr`),
      '-CA',
      at('ca.pem'),
      '-CAkey',
      at('ca.key'),
      '-CAcreateserial',
      '-days',
      '2',
      '-extfile',
      at(`${name}.ext`),
      '-out',
      at(`${name}.pem`),
    )
  }
  signed('server', '/CN=broker', `subjectAltName=${serverNames}\nextendedKeyUsage=serverAuth\n`)
  signed('client', '/CN=client', 'extendedKeyUsage=clientAuth\n')
  return {
    ca: at('ca.pem'),
    serverCert: at('server.pem'),
    serverKey: at('server.key'),
    clientCert: at('client.pem'),
    clientKey: at('client.key'),
  }
}

function openssl(...args: string[]): void {
  execFileSync('openssl', args, { stdio: 'pipe' })
}
