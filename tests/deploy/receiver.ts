import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { Emulator } from "./emulator.ts";

/** An alert as the signed webhook brings it (docs/alerts.md). */
export interface Told {
  readonly kind: string;
  readonly topic: string;
  readonly title: string;
  readonly job?: string;
  readonly alarm?: string;
  readonly isSigned: boolean;
}

const KEY = "a-key-of-the-deploy-test-and-of-no-other-place";

/** Whoever is told of alerts, by HTTPS on this machine. */
export const startReceiver = async ({ certificate, key }: Pick<Emulator, "certificate" | "key">) => {
  const told: Told[] = [];
  const server = createServer({ cert: certificate, key }, (request, response) => {
    void text(request).then((body) => {
      const { headers } = request;
      const content = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
      const signature = `v1,${createHmac("sha256", KEY).update(content).digest("base64")}`;
      told.push({ ...JSON.parse(body), isSigned: headers["webhook-signature"] === signature });
      response.end();
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    told,
    /** As the project's secret holds them. */
    secret: JSON.stringify({ url: `https://127.0.0.1:${port}/alerts`, key: KEY }),
    stop: (): void => {
      server.closeAllConnections();
      server.close();
    },
  };
};
