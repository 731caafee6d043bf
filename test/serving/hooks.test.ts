/** Model servers that move their VRAM themselves and run meanwhile; clients connect to their proxies. */
import { HOOKS_MS } from './model-servers.ts'
import { testRequests } from './requests.ts'

testRequests('27600-27699', HOOKS_MS)
