/** `headroom live` as used in a checkout without installation. */
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { headroom, temporaryFolder } from '../support/headroom-command.ts'
import { freePort } from '../support/free-port.ts'
import { whyNoNatsServer } from '../support/nats-server.ts'
import { startHeadroom } from '../support/running-command.ts'

const TIMEOUT_MS = 60_000

it.skipIf(whyNoNatsServer() !== null)(
  'The task in the first lines of headroom live runs and ends, and Ctrl-C ends all parts',
  async () => {
    const env = {
      CONTROLLER_DATA_DIR: join(temporaryFolder(), "it's"),
      CONTROLLER_HTTP_PORT: String(await freePort()),
    }
    const live = startHeadroom(['live', '--servers', '1'], env)
    const [, url = ''] = await live.says(/export HEADROOM_URL=(\S+)/)
    const run = await headroom(['run', '--vram', '1Gi', '--', 'headroom', 'work', 'busy=1s'], {
      env: { VENDOR_CONTROLLER_URL: url },
    })
    expect(run).toMatchObject({ code: 0 })
    live.process.kill('SIGINT')
    expect(await live.ended).toBe(0)
  },
  TIMEOUT_MS,
)
