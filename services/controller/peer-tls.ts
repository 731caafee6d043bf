/** TLS from a standby to the leader. */
import { readFileSync } from 'node:fs'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { errorText } from '../../protocol/error-text.ts'
import { StartFault } from '../exit-codes.ts'
import { ENVIRONMENT } from '../settings/env-table.ts'
import type { PeerTlsFiles } from '../settings/settings.ts'

/** Read when a controller becomes a standby. @throws StartFault that names the variable of a wrong file */
export function readPeerTls({ ca, cert, key }: PeerTlsFiles): SecureContextOptions {
  const { peerCaFile, peerCertFile, peerKeyFile } = ENVIRONMENT
  const options = {
    ...(ca === null ? {} : { ca: contentOf(peerCaFile.name, ca) }),
    ...(cert === null ? {} : { cert: contentOf(peerCertFile.name, cert) }),
    ...(key === null ? {} : { key: contentOf(peerKeyFile.name, key) }),
  }
  try {
    createSecureContext(options)
  } catch (error) {
    const names = [ca && peerCaFile.name, cert && peerCertFile.name, key && peerKeyFile.name].filter(Boolean)
    throw new StartFault(`${names.join(', ')} cannot be used: ${errorText(error)}`)
  }
  return options
}

function contentOf(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new StartFault(`${name} cannot be read: ${errorText(error)}`)
  }
}
