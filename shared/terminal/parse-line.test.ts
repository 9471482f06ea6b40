import { expect, test } from "vitest";
import { defineCommand } from "./command.ts";
import { parseLine } from "./parse-line.ts";

const command = defineCommand({ action: "look", about: "Looks.", options: {}, run: async () => 0 });

test.each(["--constructor", "--toString", "--hasOwnProperty", "--__proto__", "--valueOf=1"])(
  "what every object has is no option: %s",
  (option) => {
    expect(parseLine(command, [option])).toEqual({
      t: "wrong",
      problem: expect.stringMatching(/^"--.*" is no option of it, wanted --help$/),
    });
  },
);
