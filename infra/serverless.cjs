// The Serverless plugin's door: the framework loads plugins by `require`, on whatever Node it runs. Plain CommonJS
// that an old Node can still read, so that it can say in one line what is missing; the plugin itself is ESM.
"use strict";

const { existsSync } = require("node:fs");
const { join } = require("node:path");
const { pathToFileURL } = require("node:url");

const OLDEST = [22, 13];

const checkNode = (FrameworkError) => {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return;
  throw new FrameworkError(
    `belfry needs Node ${OLDEST.join(".")} or newer, this is ${process.versions.node}; "npm install --save-dev node@24" gives the project its own`,
    "BELFRY_OLD_NODE",
  );
};

/** The sources in a checkout, else what was built of them. */
const load = () => {
  const source = join(__dirname, "plugin.ts");
  const file = existsSync(source) ? source : join(__dirname, "..", "dist", "infra", "plugin.js");
  return import(pathToFileURL(file).href);
};

module.exports = class BelfryPlugin {
  constructor(serverless, options, utilities) {
    checkNode(serverless.classes.Error);
    let plugin;
    const call = (hook) => async () => {
      plugin ??= load().then(({ makePlugin }) => makePlugin(serverless, options, utilities));
      await (await plugin)[hook]();
    };
    // The first hook of each command that has to know our functions; `remove` and `info` must work with a broken job.
    this.hooks = {
      "before:package:cleanup": call("addFunctions"),
      "before:package:createDeploymentArtifacts": call("writeZips"),
      "before:package:finalize": call("addResources"),
      "after:deploy:deploy": call("sayUnconfirmed"),
      "before:deploy:function:initialize": call("refuseOneOfOurs"),
      "before:remove:remove": call("findTable"),
      "after:remove:remove": call("tellWhatIsLeft"),
      "before:invoke:invoke": call("addFunctions"),
      "before:logs:logs": call("addFunctions"),
      "before:metrics:metrics": call("addFunctions"),
    };
  }
};
