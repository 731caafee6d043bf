import { EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import { startGateway } from '../../services/gateway/gateway.ts'
import { hostNameIn } from '../../services/gateway/host-names.ts'
import { untilSignal } from '../../services/until-signal.ts'
import { addressOf, addressText } from '../command/addresses.ts'
import { openClient, type ServerOption } from '../command/session.ts'

interface GatewayArguments extends ServerOption {
  readonly hostName: readonly string[]
  readonly listen: string
  readonly admin: string
  readonly hold: number
  readonly maxHeld: number
  readonly sameHost?: true
}

const ATTEMPTS = 3

export async function gateway(given: GatewayArguments): Promise<number> {
  const hostNames = given.hostName.map((text) => {
    const name = hostNameIn(text)
    if (name === null)
      throw new UsageError(`--host-name: ${JSON.stringify(text)} must be a host name, not an address`)
    return name
  })
  const [listen, admin] = [addressOf('--listen', given.listen), addressOf('--admin', given.admin)]
  const ended = new AbortController()
  const signalled = untilSignal().then(() => ended.abort())
  const running = await startGateway({
    client: openClient(given, { attempts: ATTEMPTS, signal: ended.signal }),
    ...{ hostNames, listen, admin, holdMs: given.hold, maxHeld: given.maxHeld },
    sameHost: given.sameHost === true,
    signal: ended.signal,
    onNote: (line) => process.stderr.write(`headroom: ${line}\n`),
  }).catch((error: unknown) => {
    if (ended.signal.aborted) return null
    throw error
  })
  if (running === null) return EXIT_OK
  process.stdout.write(
    `Headroom gateway for ${hostNames.join(', ')} listens on ${addressText(listen, running.port)}; ` +
      `metrics on ${addressText(admin, running.adminPort)}; press Ctrl-C to stop\n`,
  )
  await signalled
  await running.stop()
  return EXIT_OK
}
