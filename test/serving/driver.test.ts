/** Model servers that the driver stops; clients connect to them without a proxy. */
import { SWAPS_MS } from './model-servers.ts'
import { testRequests } from './requests.ts'

testRequests(null, SWAPS_MS)
